import { memo, useId, useMemo, useState } from "react";
import { Icon } from "../ui/Icon";
import { StateGlyph } from "../ui/StateGlyph";
import { visible } from "../ui/visible";
import { duration, plural } from "../ui/words";
import { type ToolCall, isRefused } from "./messages";

const FIRST_LINES = 20;
const FIRST_CHARACTERS = 4_000;

/** One call of a tool: a line that opens to what went in and what came out. */
export const ToolLine = memo(
  function ToolLine({ call }: { call: ToolCall }) {
  const [open, setOpen] = useState(false);
  const id = useId();
  const isRunning = !call.state.startsWith("output");
  const failed = call.state === "output-error";
  const refused = isRefused(call);
  return (
    <div className={`event ${isRunning ? "running" : ""}`}>
      <span className="dot">{isRunning ? <StateGlyph state="running" /> : <Icon name={failed ? "alert" : "tool"} />}</span>
      <button
        type="button"
        className="tool"
        aria-expanded={open}
        aria-controls={id}
        onClick={() => setOpen(!open)}
      >
        <b>{call.name}</b>
        <span className="cut">{gist(call.input)}</span>
        <span className="xs faint end nowrap">
          {refused ? <span className="is-wait">refused</span> : failed ? <span className="is-fail">error</span> : isRunning ? "running" : call.output === undefined ? "" : lines(call.output)}
          {call.durationMs !== null && ` · ${duration(call.durationMs)}`}
        </span>
        <Icon name={open ? "down" : "right"} />
      </button>
      {refused && <p className="reason is-wait">{visible(call.error ?? "")}</p>}
      <div id={id} hidden={!open} className="tool-body">
        {open && (
          <>
            <h4>Input</h4>
            <pre className="well">{shown(call.input)}</pre>
            <h4>{failed ? "Error" : "Output"}</h4>
            {isRunning ? (
              <p className="faint small">It has not answered yet.</p>
            ) : call.output === undefined && !failed ? (
              <p className="faint small">What it answered is not kept.</p>
            ) : (
              <Output text={failed ? visible(call.error ?? "") : shown(call.output)} />
            )}
          </>
        )}
      </div>
    </div>
  );
  },
  // The same part is read into a new object at every painting.
  (a, b) => a.call.id === b.call.id && a.call.state === b.call.state && a.call.input === b.call.input,
);

function Output({ text }: { text: string }) {
  const [whole, setWhole] = useState(false);
  const first = useMemo(() => text.split("\n").slice(0, FIRST_LINES).join("\n").slice(0, FIRST_CHARACTERS), [text]);
  return (
    <>
      <pre className="well" tabIndex={0}>
        {whole ? text : first}
      </pre>
      {!whole && first.length < text.length && (
        <button type="button" className="btn plain dense" onClick={() => setWhole(true)}>
          Show all of it
        </button>
      )}
    </>
  );
}

function shown(value: unknown): string {
  if (typeof value === "string") return visible(value);
  return value === undefined ? "" : visible(JSON.stringify(value, null, 2));
}

/** The first argument, as it is written; usually the path or the words that were searched. */
function gist(input: unknown): string {
  if (typeof input === "string") return visible(input);
  if (input === null || typeof input !== "object") return "";
  return Object.values(input)
    .filter((value) => ["string", "number", "boolean"].includes(typeof value) && value !== "")
    .map((value) => visible(String(value)))
    .join(" · ");
}

function lines(output: unknown): string {
  const text = shown(output);
  if (text === "") return "nothing";
  return plural(text.replace(/\n$/, "").split("\n").length, "line");
}
