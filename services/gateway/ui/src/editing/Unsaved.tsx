import { hunks, lineDiff } from "./diff";

/** What saving would change of one field. */
export interface Change {
  key: string;
  label: string;
  /** Told line by line: a text, or the items of a list; a value is told whole. */
  kind: "text" | "list" | "value";
  before: string;
  after: string;
}

/** What saving would change, line by line. */
export function Unsaved({ changes, note }: { changes: Change[]; note: string }) {
  if (changes.length === 0) return null;
  return (
    <aside className="unsaved" aria-label="Unsaved changes">
      <h2>Not saved yet</h2>
      <p className="small dim">{note}</p>
      <div className="diff">
        {changes.map(({ key, ...change }) => (
          <Changed key={key} {...change} />
        ))}
      </div>
    </aside>
  );
}

function Changed({ label, kind, before, after }: Omit<Change, "key">) {
  if (kind === "text") {
    return hunks(lineDiff(before, after)).map(({ at, lines }) => (
      <div key={at}>
        <div className="at">
          {label}, line {at}
        </div>
        {lines.map(({ kind: sign, text }, index) => (
          <Line key={index} kind={sign} text={text} />
        ))}
      </div>
    ));
  }
  const items = (text: string) => (kind === "list" ? text.split("\n").filter(Boolean) : [text]);
  const added = items(after).filter((item) => !items(before).includes(item));
  const taken = items(before).filter((item) => !items(after).includes(item));
  const isMoved = added.length + taken.length === 0;
  const inOneLine = (text: string) => text.replaceAll("\n", ", ") || "none";
  return (
    <div>
      <div className="at">{label}</div>
      {(isMoved ? [inOneLine(before)] : taken).map((text) => (
        <Line key={text} kind="del" text={text} />
      ))}
      {(isMoved ? [inOneLine(after)] : added).map((text) => (
        <Line key={text} kind="add" text={text} />
      ))}
    </div>
  );
}

/** Its sign and its element say what the colour says. */
function Line({ kind, text }: { kind: "same" | "del" | "add"; text: string }) {
  if (kind === "same") return <div>{`  ${text}`}</div>;
  return kind === "del" ? <del>{`− ${text}`}</del> : <ins>{`+ ${text}`}</ins>;
}
