import { useEffect, useRef, useState } from "react";

/** A text that was written, to be written otherwise where it stands. */
export function EditText({
  text,
  label,
  note,
  action,
  onDone,
  onCancel,
}: {
  text: string;
  label: string;
  /** What stands below the field, what becomes of it. */
  note: string;
  action: string;
  onDone: (text: string) => void;
  onCancel: () => void;
}) {
  const [value, setValue] = useState(text);
  const field = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    field.current?.focus();
    field.current?.setSelectionRange(text.length, text.length);
  }, [text.length]);
  const send = () => value.trim() && value !== text && onDone(value);
  return (
    <form
      className="edit"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <textarea
        ref={field}
        className="input grows"
        aria-label={label}
        dir="auto"
        value={value}
        onChange={(event) => setValue(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onCancel();
          else if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) send();
          else return;
          event.preventDefault();
          event.stopPropagation();
        }}
      />
      <div className="line">
        <span className="faint xs grow">{note}</span>
        <button type="button" className="btn dense" onClick={onCancel}>
          Cancel
        </button>
        <button type="submit" className="btn primary dense" disabled={!value.trim() || value === text}>
          {action}
        </button>
      </div>
    </form>
  );
}
