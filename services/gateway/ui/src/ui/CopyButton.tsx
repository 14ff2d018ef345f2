import { useState } from "react";
import { Icon } from "./Icon";

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [done, setDone] = useState(false);
  return (
    <button
      type="button"
      className="btn plain dense"
      aria-label={label}
      title={label}
      onClick={async () => {
        await copy(text);
        setDone(true);
        setTimeout(() => setDone(false), 1_500);
      }}
    >
      <Icon name={done ? "check" : "copy"} />
      <span className="btn-label">{done ? "Copied" : "Copy"}</span>
    </button>
  );
}

/** Put text on the clipboard; over plain HTTP on another machine browsers offer the old way only. */
export async function copy(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "sr";
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}
