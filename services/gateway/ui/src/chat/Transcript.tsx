import { memo } from "react";
import { Answer, type AnswerActions } from "./Answer";
import { Said, type SaidActions } from "./Said";
import type { Message } from "./messages";

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
  const last = messages.at(-1);
  return (
    <>
      {messages.map((message) =>
        message.role === "user" ? (
          <Said key={message.id} message={message} canEdit={!isRunning && !isArchived} actions={actions} />
        ) : (
          <Answer
            key={message.id}
            message={message}
            isLast={message === last}
            // An answer that ended before the running one is not it.
            isLive={isRunning && message === last && !message.metadata?.state}
            canChange={!isRunning && !isArchived}
            actions={actions}
          />
        ),
      )}
    </>
  );
});
