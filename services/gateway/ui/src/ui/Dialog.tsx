import { type ReactNode, useEffect, useRef } from "react";

/** A modal sheet: the browser's own dialog, so that focus is held in it and returns to what opened it. */
export function Dialog({
  label,
  className = "",
  onClose,
  children,
}: {
  label: string;
  className?: string;
  onClose: () => void;
  children: ReactNode;
}) {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const opener = document.activeElement;
    ref.current?.showModal();
    return () => {
      if (opener instanceof HTMLElement && opener.isConnected) opener.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      className={`sheet ${className}`}
      aria-label={label}
      onClose={onClose}
      onClick={(event) => event.target === ref.current && onClose()}
    >
      {children}
    </dialog>
  );
}

/** Ask before something that cannot be undone; the button says what it does. */
export function Confirm({
  title,
  text,
  action,
  dismiss = "Cancel",
  onConfirm,
  onClose,
}: {
  title: string;
  text: string;
  action: string;
  /** What the other button says, where “Cancel” is what is asked about. */
  dismiss?: string;
  onConfirm: () => void;
  onClose: () => void;
}) {
  return (
    <Dialog label={title} onClose={onClose}>
      <div className="inside">
        <h2>{title}</h2>
        <p className="dim">{text}</p>
        <div className="actions">
          <button type="button" className="btn" onClick={onClose} autoFocus>
            {dismiss}
          </button>
          <button
            type="button"
            className="btn danger"
            onClick={() => {
              onConfirm();
              onClose();
            }}
          >
            {action}
          </button>
        </div>
      </div>
    </Dialog>
  );
}
