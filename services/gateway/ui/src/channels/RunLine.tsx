import { useState } from "react";
import { Link } from "wouter";
import type { ChannelMessage, ChannelRun } from "../contracts";
import { ConfirmCancel } from "../tasks/ConfirmCancel";
import { glyphOf } from "../tasks/words";
import { StopIcon } from "../ui/Icon";
import { type Glyph, StateGlyph } from "../ui/StateGlyph";
import { attempt } from "../ui/attempt";
import { visible } from "../ui/visible";
import { cancelRun } from "./queries";
import { hasTask, isAtWork, runWords } from "./words";

/** What a post has started, as it goes: who has it, where it stands, and how it is ended. */
export function RunLine({ message, run, by }: { message: ChannelMessage; run: ChannelRun; by: string }) {
  const [isAsked, setAsked] = useState(false);
  const isLive = run.state === "running" || run.state === "cancelling";
  const isBad = run.state === "failed" || run.state === "dead-letter";
  return (
    <div className={`stamp post-run ${isLive ? "is-live" : ""}`}>
      <StateGlyph state={glyph(run)} />
      <span className={isBad ? "is-fail" : ""}>{visible(runWords(run, by))}</span>
      {hasTask(run) && (
        <Link href={`/tasks/${run.taskId}`} className="link nowrap">
          {isLive ? "Watch it" : "See its task"}
        </Link>
      )}
      {isAtWork(run) && (
        <button type="button" className="btn dense" disabled={run.state === "cancelling"} onClick={() => setAsked(true)}>
          <StopIcon />
          {run.state === "cancelling" ? "Cancelling…" : "Cancel"}
        </button>
      )}
      {isAsked && (
        <ConfirmCancel
          isBegun={isLive}
          onConfirm={() => void attempt(cancelRun(message))}
          onClose={() => setAsked(false)}
        />
      )}
    </div>
  );
}

function glyph({ state }: ChannelRun): Glyph {
  return state === "waiting" ? "queued" : glyphOf({ state, interruptedAt: null });
}
