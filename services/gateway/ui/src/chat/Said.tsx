import { memo, useState } from "react";
import { CopyButton } from "../ui/CopyButton";
import { visible } from "../ui/visible";
import { clock, exactly } from "../ui/words";
import { Branches } from "./Branches";
import { ChangeButton } from "./ChangeButton";
import { EditText } from "./EditText";
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
        <EditText
          text={text}
          label="Change what you said"
          note="The answer below stays reachable as another version."
          action="Send"
          onCancel={() => setEditing(false)}
          onDone={(changed) => {
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
