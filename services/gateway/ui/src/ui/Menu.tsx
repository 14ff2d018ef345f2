import { type KeyboardEvent, type ReactNode, useCallback, useId, useLayoutEffect, useRef, useState } from "react";
import { Icon, type IconName } from "./Icon";

export interface MenuItem {
  label: string;
  icon?: IconName;
  danger?: boolean;
  /** Given for a choice: whether it is the chosen one. */
  checked?: boolean;
  onSelect: () => void;
}

const GAP = 4;

/** A button that opens a menu; arrows walk, Home and End jump, Esc and a click elsewhere close it. */
export function Menu({
  label,
  className = "btn plain square",
  items,
  note,
  children,
  disabled = false,
}: {
  /** The accessible name, where the content of the button does not say it. */
  label: string;
  className?: string;
  items: MenuItem[];
  note?: ReactNode;
  children: ReactNode;
  disabled?: boolean;
}) {
  const [open, setOpen] = useState(false);
  const button = useRef<HTMLButtonElement>(null);
  const menu = useRef<HTMLDivElement>(null);
  const id = useId();

  // Placed by the style object of the element, which the policy allows; an attribute it would refuse.
  useLayoutEffect(() => {
    const list = menu.current;
    if (!open || !list || !button.current) return;
    list.showPopover();
    const from = button.current.getBoundingClientRect();
    const size = list.getBoundingClientRect();
    const below = from.bottom + GAP + size.height <= innerHeight || from.top < size.height + GAP;
    list.style.top = `${below ? from.bottom + GAP : from.top - GAP - size.height}px`;
    list.style.left = `${Math.max(GAP, Math.min(from.left, innerWidth - size.width - GAP))}px`;
    (list.querySelector<HTMLElement>('[aria-checked="true"]') ?? list.querySelector<HTMLElement>("[role]"))?.focus();
  }, [open]);

  const close = useCallback((focus: boolean) => {
    setOpen(false);
    if (focus) button.current?.focus();
  }, []);

  const onKeyDown = (event: KeyboardEvent) => {
    const all = [...(menu.current?.querySelectorAll<HTMLElement>('[role^="menuitem"]') ?? [])];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (to !== undefined) all.at(to % all.length)?.focus();
    else if (event.key === "Escape") close(true);
    else if (event.key === "Tab") return close(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };

  return (
    <>
      <button
        ref={button}
        type="button"
        className={className}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={open}
        {...(open ? { "aria-controls": id } : {})}
        disabled={disabled}
        onClick={() => setOpen((was) => !was)}
      >
        {children}
      </button>
      {open && (
        <div
          ref={menu}
          id={id}
          role="menu"
          aria-label={label}
          className="menu"
          popover="auto"
          tabIndex={-1}
          onKeyDown={onKeyDown}
          onToggle={(event) => event.newState === "closed" && setOpen(false)}
        >
          {note && <div className="note">{note}</div>}
          {items.map((item, index) => (
            <button
              // Labels may be the same twice; the order of a menu does not change while it is open.
              key={index}
              type="button"
              tabIndex={-1}
              role={item.checked === undefined ? "menuitem" : "menuitemradio"}
              aria-checked={item.checked}
              className={item.danger ? "danger" : ""}
              onClick={() => {
                close(true);
                item.onSelect();
              }}
            >
              {item.icon && <Icon name={item.icon} />}
              <span className="grow cut">{item.label}</span>
              {item.checked && <Icon name="check" />}
            </button>
          ))}
        </div>
      )}
    </>
  );
}
