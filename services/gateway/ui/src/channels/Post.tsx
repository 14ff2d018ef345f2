import { type KeyboardEvent, memo, useState } from "react";
import { Link } from "wouter";
import { EditText } from "../chat/EditText";
import { Prose } from "../chat/Prose";
import type { ChannelMessage } from "../contracts";
import { copy } from "../ui/CopyButton";
import { Icon } from "../ui/Icon";
import { Menu, type MenuItem } from "../ui/Menu";
import { say } from "../ui/toasts";
import { visible } from "../ui/visible";
import { clock, exactly } from "../ui/words";
import { Growing } from "./Growing";
import { Monogram } from "./Monogram";
import { RunLine } from "./RunLine";

export interface PostActions {
  /** Where its thread is. */
  threadOf: (message: ChannelMessage) => string;
  answer: (message: ChannelMessage) => void;
  edit: (message: ChannelMessage, body: string) => void;
  remove: (message: ChannelMessage) => void;
}

/** A message: who wrote it, what, and what it has started. */
export const Post = memo(function Post({
  message,
  by,
  answers,
  isGone,
  isFollowed,
  actions,
}: {
  message: ChannelMessage;
  /** Who does what it has started. */
  by: string;
  /** Of what it answers, a line; null where that is plain. */
  answers: string | null;
  isGone: boolean;
  /** What is said for it is shown as it is said. */
  isFollowed: boolean;
  actions: PostActions;
}) {
  const [isEdited, setEdited] = useState(false);
  const { run } = message;
  const author = message.authorKind === "user" ? "You" : visible(message.authorName);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "Enter" && event.target === event.currentTarget && !isGone) actions.answer(message);
  };
  return (
    <article className="turn post" id={`m-${message.id}`} data-seq={message.seq} aria-label={author} tabIndex={-1} data-row onKeyDown={onKeyDown}>
      <Monogram kind={message.authorKind} name={message.authorName} />
      <div className="post-head">
        <b>{author}</b>
        <a href={`#${message.seq}`} className="xs faint">
          <time dateTime={message.createdAt} title={exactly(message.createdAt)}>
            {clock(message.createdAt)}
          </time>
        </a>
        {message.editedAt && !isGone && (
          <span className="xs faint" title={exactly(message.editedAt)}>
            changed
          </span>
        )}
        {!isGone && <Acts message={message} author={author} actions={actions} onEdit={() => setEdited(true)} />}
      </div>
      <div className="post-body">
        {answers !== null && (
          <Link href={actions.threadOf(message)} className="post-answers xs">
            <Icon name="up" />
            <span className="cut">answers “{answers}”</span>
          </Link>
        )}
        {isGone ? (
          <p className="small faint">This message was deleted.</p>
        ) : isEdited ? (
          <EditText
            text={message.body}
            label="Change what you wrote"
            note={run ? "What it has started goes on with the words that it had." : "Everybody sees that it was changed."}
            action="Save"
            onCancel={() => setEdited(false)}
            onDone={(body) => {
              setEdited(false);
              actions.edit(message, body);
            }}
          />
        ) : (
          <Prose text={message.body} isGrowing={false} />
        )}
        {run && <RunLine message={message} run={run} by={by} />}
        {isFollowed && run?.state === "running" && <Growing run={run} by={by} />}
      </div>
    </article>
  );
});

function Acts({ message, author, actions, onEdit }: { message: ChannelMessage; author: string; actions: PostActions; onEdit: () => void }) {
  const copied = (text: string, done: string) => void copy(text).then((worked) => say(worked ? done : "This browser did not let it be copied."));
  const items: MenuItem[] = [
    { label: "Copy the text", icon: "copy", onSelect: () => copied(message.body, "Copied.") },
    { label: "Copy a link to it", icon: "link", onSelect: () => copied(`${location.origin}/channels/${message.channelId}#${message.seq}`, "Link copied.") },
  ];
  if (message.authorKind === "user") items.unshift({ label: "Change it", icon: "pen", onSelect: onEdit });
  return (
    <span className="post-acts">
      <button type="button" className="btn plain dense" title="Answer it in its thread" aria-label={`Answer what ${author} wrote`} onClick={() => actions.answer(message)}>
        <Icon name="chat" />
        <span className="not-phone">Answer</span>
      </button>
      <Menu
        label={`More of what ${author} wrote`}
        className="btn plain dense square"
        items={[...items, { label: "Delete", icon: "trash", danger: true, onSelect: () => actions.remove(message) }]}
      >
        <Icon name="more" className="thick" />
      </Menu>
    </span>
  );
}
