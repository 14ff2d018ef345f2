import { type ComponentProps, useContext } from "react";
import { Icon } from "../ui/Icon";
import { MayChange } from "./mayChange";

/** Changes the branch from a message on; not while a turn runs. */
export function ChangeButton({
  label,
  title,
  icon,
  disabled = false,
  onClick,
}: {
  label: string;
  title: string;
  icon: ComponentProps<typeof Icon>["name"];
  disabled?: boolean;
  onClick: () => void;
}) {
  const mayChange = useContext(MayChange);
  return (
    <button
      type="button"
      className="btn plain dense"
      title={title}
      aria-label={label}
      disabled={!mayChange || disabled}
      onClick={onClick}
    >
      <Icon name={icon} />
      <span className="btn-label">{label}</span>
    </button>
  );
}
