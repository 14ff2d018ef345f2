import { memo } from "react";
import { visible } from "../ui/visible";

// What is longer is laid out in parts, those that are seen.
const PART_LINES = 200;

/** A text as it is written, where it is not drawn as Markdown. */
export function Plain({ text }: { text: string }) {
  return (
    <div className="prose plain">
      <Raw text={text} />
    </div>
  );
}

/** The same, inside of prose. */
export function Raw({ text }: { text: string }) {
  return (
    <div className="raw">
      {parts(text).map((part, index) => (
        // A part never moves to another place.
        <RawPart key={index} text={part} />
      ))}
    </div>
  );
}

const RawPart = memo(function RawPart({ text }: { text: string }) {
  return (
    <p dir="auto" style={{ containIntrinsicBlockSize: `auto ${text.split("\n").length}lh` }}>
      {visible(text)}
    </p>
  );
});

function parts(text: string): string[] {
  const lines = text.split("\n");
  if (lines.length <= PART_LINES) return [text];
  return Array.from({ length: Math.ceil(lines.length / PART_LINES) }, (_, n) =>
    lines.slice(n * PART_LINES, (n + 1) * PART_LINES).join("\n"),
  );
}
