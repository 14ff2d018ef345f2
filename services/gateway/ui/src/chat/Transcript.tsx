import { memo, useRef, useState } from "react";
import { Answer, type AnswerActions } from "./Answer";
import { Said, type SaidActions } from "./Said";
import { grouped } from "./grouped";
import { MayChange } from "./mayChange";
import { type Message, heightOf } from "./messages";

export type TranscriptActions = AnswerActions & SaidActions;

/** Every message of the branch. Those that did not change are not drawn again. */
export const Transcript = memo(function Transcript({
  messages,
  isRunning,
  isArchived,
  actions,
}: {
  messages: Message[];
  isRunning: boolean;
  isArchived: boolean;
  actions: TranscriptActions;
}) {
  const begins = useRef(new Set<string>());
  const groups = grouped(messages, begins.current);
  return (
    <MayChange value={!isRunning && !isArchived}>
      {groups.map((group, index) => {
        const isEnd = index === groups.length - 1;
        return (
          <Turns key={group[0]?.id} messages={group} isEnd={isEnd} isRunning={isEnd && isRunning} actions={actions} />
        );
      })}
    </MayChange>
  );
});

interface Neighbours {
  messages: Message[];
  /** The last message is the last one of all. */
  isEnd: boolean;
  isRunning: boolean;
  actions: TranscriptActions;
}

/** Messages that the browser leaves out together while they are far away. */
const Turns = memo(function Turns({ messages, isEnd, isRunning, actions }: Neighbours) {
  // Their height until they were laid out once.
  const [guess] = useState(() => `auto ${Math.round(messages.reduce((sum, message) => sum + heightOf(message), 0))}px`);
  const last = isEnd ? messages.at(-1) : null;
  return (
    <div className="turns" style={{ containIntrinsicBlockSize: guess }}>
      {messages.map((message) =>
        message.role === "user" ? (
          <Said key={message.id} message={message} actions={actions} />
        ) : (
          <Answer
            key={message.id}
            message={message}
            isLast={message === last}
            // An answer that ended before the running one is not it.
            isLive={isRunning && message === last && !message.metadata?.state}
            actions={actions}
          />
        ),
      )}
    </div>
  );
}, areSame);

/** Their messages stand in a new list each time. */
function areSame(a: Neighbours, b: Neighbours): boolean {
  return (
    a.isEnd === b.isEnd &&
    a.isRunning === b.isRunning &&
    a.actions === b.actions &&
    a.messages.length === b.messages.length &&
    a.messages.every((message, index) => message === b.messages[index])
  );
}
