import { memo, useEffect, useRef, useState } from "react";
import { CopyButton } from "../ui/CopyButton";
import { visible } from "../ui/visible";
import { clock, exactly } from "../ui/words";
import { Branches } from "./Branches";
import { ChangeButton } from "./ChangeButton";
import { type Message, textOf } from "./messages";

export interface SaidActions {
  edit: (messageId: string, text: string) => void;
  switchTo: (messageId: string) => void;
}

/** What the person said: as it was typed, never interpreted. */
export const Said = memo(function Said({
  message,
  actions,
}: {
  message: Message;
  actions: SaidActions;
}) {
  const [editing, setEditing] = useState(false);
  const text = textOf(message);
  const { createdAt, siblings } = message.metadata ?? {};
  return (
    <article className="turn said" id={`m-${message.id}`} aria-label="You">
      {editing ? (
        <Edit
          text={text}
          onCancel={() => setEditing(false)}
          onSend={(changed) => {
            setEditing(false);
            actions.edit(message.id, changed);
          }}
        />
      ) : (
        <p className="said-text" dir="auto">
          {visible(text)}
        </p>
      )}
      <footer className="line actions">
        {createdAt && (
          <time className="xs faint" title={exactly(createdAt)}>
            {clock(createdAt)}
          </time>
        )}
        {siblings && <Branches id={message.id} siblings={siblings} onSwitch={actions.switchTo} />}
        <span className="line end quiet">
          <CopyButton text={text} label="Copy what you said" />
          <ChangeButton
            label="Edit"
            title="Change it and go on from here; this version stays"
            icon="pen"
            disabled={editing}
            onClick={() => setEditing(true)}
          />
        </span>
      </footer>
    </article>
  );
});

function Edit({ text, onSend, onCancel }: { text: string; onSend: (text: string) => void; onCancel: () => void }) {
  const [value, setValue] = useState(text);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(text.length, text.length);
  }, [text.length]);
  const send = () => value.trim() && value !== text && onSend(value);
  return (
    <form
      className="edit"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        ref={field}
        className="input grows"
        aria-label="Change what you said"
        dir="auto"
        value={value}
        onChange={(event) => setValue(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onCancel();
          else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <div className="line">
        <span className="faint xs grow">The answer below stays reachable as another version.</span>
        <button type="button" className="btn dense" onClick={onCancel}>
          Cancel
        </button>
        <button type="submit" className="btn primary dense" disabled={!value.trim() || value === text}>
          Send
        </button>
      </div>
    </form>
  );
}
