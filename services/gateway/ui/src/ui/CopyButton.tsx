import { useState } from "react";
import { Icon } from "./Icon";
import { say } from "./toasts";

export function CopyButton({ text, label }: { text: string; label: string }) {
  const [done, setDone] = useState(false);
  return (
    <button
      type="button"
      className="btn plain dense"
      aria-label={label}
      title={label}
      onClick={async () => {
        if (!(await copy(text))) return say("This browser did not let it be copied.");
        setDone(true);
        setTimeout(() => setDone(false), 1_500);
      }}
    >
      <Icon name={done ? "check" : "copy"} />
      <span className="btn-label">{done ? "Copied" : "Copy"}</span>
    </button>
  );
}

/** Put text on the clipboard, and tell whether it is there; over plain HTTP browsers offer the old way only. */
export async function copy(text: string): Promise<boolean> {
  if (navigator.clipboard) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return false; // the browser forbids it here
    }
  }
  const field = document.createElement("textarea");
  field.value = text;
  field.className = "sr";
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}
