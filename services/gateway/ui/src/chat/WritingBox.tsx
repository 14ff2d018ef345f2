import { type KeyboardEvent, type ReactNode, type RefObject, type TextareaHTMLAttributes, useEffect } from "react";
import { Icon } from "../ui/Icon";
import { COARSE, useMedia } from "../ui/media";

/** The field that one writes into, with what goes with the words below it; Enter sends, on a phone the button alone. */
export function WritingBox({
  field,
  label,
  placeholder,
  text,
  longest,
  canSend,
  onText,
  onSend,
  onKey = () => false,
  attributes = {},
  notice,
  above,
  instead,
  children,
}: {
  field: RefObject<HTMLTextAreaElement | null>;
  label: string;
  placeholder: string;
  text: string;
  /** In characters. */
  longest: number;
  /** Whether words could be sent now, if there were any. */
  canSend: boolean;
  onText: (text: string) => void;
  onSend: () => void;
  /** Asked before a key does what it does here: whether it was for something else. */
  onKey?: (event: KeyboardEvent) => boolean;
  attributes?: TextareaHTMLAttributes<HTMLTextAreaElement>;
  /** What stands above the box. */
  notice?: ReactNode;
  /** What floats above the field. */
  above?: ReactNode;
  /** What stands where the button to send would. */
  instead?: ReactNode;
  children: ReactNode;
}) {
  const isTouch = useMedia(COARSE);
  const length = text.length <= longest ? text.length : [...text].length;
  const sends = canSend && text.trim() !== "" && length <= longest;

  useEffect(() => {
    if (!isTouch) field.current?.focus();
  }, [isTouch, field]);

  const onKeyDown = (event: KeyboardEvent) => {
    if (onKey(event)) {
      event.preventDefault();
      event.stopPropagation();
      return;
    }
    // The single keys work outside of it.
    if (event.key === "Escape" && !event.shiftKey) {
      event.preventDefault();
      field.current?.blur();
      return;
    }
    if (event.key !== "Enter" || event.nativeEvent.isComposing || event.shiftKey) return;
    // On a phone Enter is a new line; there the button sends.
    if (isTouch && !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (sends) onSend();
  };

  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        if (sends) onSend();
      }}
    >
      {notice}
      <div className="composer-box">
        {above}
        <textarea
          ref={field}
          id="composer"
          className="grows"
          rows={1}
          dir="auto"
          aria-label={label}
          placeholder={placeholder}
          value={text}
          onChange={(event) => onText(event.target.value)}
          onKeyDown={onKeyDown}
          {...attributes}
        />
        <div className="line">
          {children}
          <span className="end line">
            {length > longest && <span className="xs is-fail">At most {longest.toLocaleString()} characters</span>}
            {instead || (
              <button type="submit" className="btn primary dense" disabled={!sends}>
                <Icon name="up" />
                Send
              </button>
            )}
          </span>
        </div>
      </div>
    </form>
  );
}
