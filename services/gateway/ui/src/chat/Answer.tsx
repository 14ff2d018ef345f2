import { Fragment, type ReactNode, memo, useContext, useId, useState } from "react";
import { Link } from "wouter";
import { HookRuns } from "../hooks/HookRuns";
import { CopyButton } from "../ui/CopyButton";
import { Icon } from "../ui/Icon";
import { type State, StateGlyph } from "../ui/StateGlyph";
import { visible } from "../ui/visible";
import { clock, count, duration, exactly, plural } from "../ui/words";
import { Branches } from "./Branches";
import { ChangeButton } from "./ChangeButton";
import { Delegation, Woken } from "./Delegation";
import { Elapsed } from "./Elapsed";
import { Prose } from "./Prose";
import { ToolLine } from "./ToolLine";
import { type Piece, isDelegation, isLetter, piecesOf, storedOf } from "./delegation";
import { MayChange } from "./mayChange";
import { type Ending, type Message, type Part, isFailureText, textOf, toolCall } from "./messages";

export interface AnswerActions {
  /** The chat that they act on. */
  sessionId: string;
  regenerate: (messageId: string) => void;
  goOn: () => void;
  switchTo: (messageId: string) => void;
}

/** What the orchestrator did and wrote: everything hangs on one spine and ends in one stamp. */
export const Answer = memo(function Answer({
  message,
  isLive,
  isLast,
  actions,
}: {
  message: Message;
  /** It is being written now. */
  isLive: boolean;
  isLast: boolean;
  actions: AnswerActions;
}) {
  const meta = message.metadata ?? {};
  const pieces = piecesOf(message, isShown);
  const lastIndex = pieces.at(-1)?.index;
  const ending = isLive ? null : endingOf(message);
  const stored = storedOf(message);
  return (
    <article className="turn answer" id={`m-${message.id}`} aria-label="Orchestrator">
      <div className="event first">
        <span className="dot">
          <span className="who" aria-hidden="true">
            Or
          </span>
        </span>
        <header className="by">
          <b>Orchestrator</b>
          <span className="xs faint">
            {meta.createdAt && <time title={exactly(meta.createdAt)}>{clock(meta.createdAt)}</time>}
            {meta.createdAt && meta.model && " · "}
            {meta.model}
          </span>
        </header>
      </div>
      {pieces.map((piece) => {
        const wakers = wakersOf(piece);
        return (
          <Fragment key={piece.index}>
            {"given" in piece ? (
              <Delegation given={piece.given} messageId={message.id} ending={ending} />
            ) : (
              <PartView part={piece.part} isGrowing={isLive && piece.index === lastIndex} />
            )}
            {wakers.length > 0 && <Woken callIds={wakers} stored={stored} messageId={message.id} ending={ending} />}
          </Fragment>
        );
      })}
      {isLive ? <Working parts={message.parts} /> : <Stamp message={message} isLast={isLast} actions={actions} />}
    </article>
  );
});

/** The calls of a piece under which letters may have woken somebody. */
function wakersOf(piece: Piece): string[] {
  if ("given" in piece) return piece.given.map(({ call }) => call.id);
  const call = toolCall(piece.part);
  return call && isLetter(call) ? [call.id] : [];
}

function isShown(part: Part): boolean {
  if (part.type === "text") return part.text.trim() !== "" && !isFailureText(part);
  if (part.type === "reasoning") return part.text.trim() !== "";
  return toolCall(part) !== null;
}

function PartView({ part, isGrowing }: { part: Part; isGrowing: boolean }) {
  if (part.type === "text") {
    return (
      <div className="event">
        <Prose text={part.text} isGrowing={isGrowing} />
      </div>
    );
  }
  if (part.type === "reasoning") return <Thought text={part.text} isGrowing={isGrowing} />;
  const call = toolCall(part);
  return call && <ToolLine call={call} />;
}

function Thought({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  return (
    <div className="event">
      <span className="dot">
        <Icon name="thought" />
      </span>
      <button type="button" className="tool" aria-expanded={open} aria-controls={id} onClick={() => setOpen(!open)}>
        <b>{isGrowing ? "Thinking" : "Thought"}</b>
        <span className="cut faint">{open ? "" : text.trim().split("\n")[0]}</span>
        <Icon name={open ? "down" : "right"} className="end" />
      </button>
      <div id={id} hidden={!open} className="thought">
        {visible(text)}
      </div>
    </div>
  );
}

/** While nothing can be read yet: what it does now, in words. */
function Working({ parts }: { parts: Part[] }) {
  const last = parts.at(-1);
  const call = last && toolCall(last);
  const isWriting = last?.type === "text" && last.state !== "done";
  const others = isWriting ? null : atWork(parts);
  const word = isWriting ? "Writing" : call && !call.state.startsWith("output") ? `Using ${call.name}` : last ? "Working" : "Reading";
  return (
    <div className="event last">
      <span className="dot">
        <StateGlyph state="running" />
      </span>
      <p className="stamp is-live">
        {others ?? word}… {!isWriting && !others && <Elapsed key={parts.length} />}
      </p>
    </div>
  );
}

/** How many specialists work, in words; null when none does. Their lanes say more, and for how long. */
function atWork(parts: Part[]): string | null {
  const running = parts.filter((part) => {
    const call = toolCall(part);
    return call && isDelegation(call) && !call.state.startsWith("output");
  }).length;
  return running === 0 ? null : running === 1 ? "A specialist works" : `${running} specialists work`;
}

function endingOf(message: Message): Ending {
  return message.metadata?.state ?? "completed";
}

const ENDINGS: Record<string, { state: State; words: string; tone: string }> = {
  completed: { state: "completed", words: "Done", tone: "" },
  stopped: { state: "stopped", words: "Stopped by you", tone: "" },
  failed: { state: "failed", words: "Failed", tone: "is-fail" },
  interrupted: { state: "interrupted", words: "Interrupted", tone: "is-wait" },
};

/** A hook kept the message from every model. */
const REFUSED = "hook_denied";
const REFUSAL = { state: "stopped" as State, words: "Refused by a hook", tone: "is-wait" };

/** The one line that ends an answer: how, when, how long, what it took, and what can be done now. */
function Stamp({
  message,
  isLast,
  actions,
}: {
  message: Message;
  isLast: boolean;
  actions: AnswerActions;
}) {
  const meta = message.metadata ?? {};
  const [showsHooks, showHooks] = useState(false);
  const hooksId = useId();
  const ending = meta.error?.class === REFUSED ? REFUSAL : ENDINGS[endingOf(message)];
  if (!ending) return null;
  const facts: ReactNode[] = [];
  if (meta.durationMs !== undefined) facts.push(duration(meta.durationMs));
  // Nothing is counted where the model server broke off before it told.
  if (meta.usage && meta.usage.inputTokens + meta.usage.outputTokens > 0) {
    const { inputTokens, outputTokens, estimated } = meta.usage;
    const words = `${count(inputTokens)} tokens read, ${count(outputTokens)} written`;
    facts.push(
      <span title={estimated ? `${words}; counted here, the model server told none` : words}>
        {estimated ? "about " : ""}
        {count(inputTokens + outputTokens)} tokens
      </span>,
    );
  }
  if (meta.traceId) {
    facts.push(
      <Link className="link" href={`/observe/traces/${meta.traceId}`}>
        Trace
      </Link>,
    );
  }
  if (meta.hooks && meta.turnId) {
    const { runs, denied } = meta.hooks;
    facts.push(
      <button type="button" className="link" aria-expanded={showsHooks} aria-controls={hooksId} onClick={() => showHooks(!showsHooks)}>
        {plural(runs, "hook run")}
        {denied > 0 && <span className="is-wait">, {denied} refused</span>}
      </button>,
    );
  }
  const again = meta.state === "failed" ? "Retry" : "Regenerate";
  return (
    <div className="event last">
      <span className="dot">
        <StateGlyph state={ending.state} />
      </span>
      <footer className="stamp">
        <p className="grow">
          <b className={ending.tone}>{ending.words}</b>
          {facts.map((fact, index) => (
            // The facts of an ended answer never change.
            <span key={index}> · {fact}</span>
          ))}
        </p>
        <span className="line actions">
          {meta.siblings && <Branches id={message.id} siblings={meta.siblings} onSwitch={actions.switchTo} />}
          {textOf(message) && <CopyButton text={textOf(message)} label="Copy the answer" />}
          <ChangeButton
            label={again}
            title="Write this answer again, beside this one"
            icon="retry"
            onClick={() => actions.regenerate(message.id)}
          />
        </span>
      </footer>
      {meta.error && (
        <p className={`reason ${ending.tone}`}>
          {meta.error.text}
          {meta.error.class === REFUSED ? (
            <Link className="link" href="/settings/hooks">
              All hooks
            </Link>
          ) : (
            meta.state === "failed" &&
            isLast && (
              <Link className="link" href="/settings/models">
                Which model answers
              </Link>
            )
          )}
        </p>
      )}
      {meta.budgetExhausted && (
        <p className="reason is-wait">
          Out of steps ({plural(meta.steps ?? 0, "model call")}). This is a summary;{" "}
          <Link className="link" href="/settings/runtime">
            raise the ceiling in Settings
          </Link>
          .
        </p>
      )}
      {meta.endReason === "length" && (
        <p className="reason is-wait">The model reached its limit of length. Ask it to go on.</p>
      )}
      {meta.hooks && meta.turnId && (
        <div id={hooksId} hidden={!showsHooks}>
          {showsHooks && <HookRuns sessionId={actions.sessionId} turnId={meta.turnId} />}
        </div>
      )}
      {isLast && (meta.state === "stopped" || meta.state === "interrupted") && (
        <GoOn isPart={textOf(message) !== ""} onClick={actions.goOn} />
      )}
    </div>
  );
}

function GoOn({ isPart, onClick }: { isPart: boolean; onClick: () => void }) {
  if (!useContext(MayChange)) return null;
  return (
    <p className="reason">
      {isPart ? "What it wrote is kept. " : ""}
      <button type="button" className="btn dense" onClick={onClick}>
        <Icon name="retry" />
        Continue
      </button>
    </p>
  );
}
