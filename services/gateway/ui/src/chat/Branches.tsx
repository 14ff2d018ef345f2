import { useContext } from "react";
import { Icon } from "../ui/Icon";
import { MayChange } from "./mayChange";

/** Which of several answers, or wordings of a question, is shown; the others are one step away. */
export function Branches({
  id,
  siblings,
  onSwitch,
}: {
  id: string;
  siblings: string[];
  onSwitch: (messageId: string) => void;
}) {
  const canSwitch = useContext(MayChange);
  const at = siblings.indexOf(id);
  if (siblings.length < 2 || at < 0) return null;
  const step = (by: number, name: "left" | "right", label: string) => {
    const to = siblings[at + by];
    return (
      <button
        type="button"
        className="btn plain dense square"
        aria-label={label}
        title={label}
        disabled={!to || !canSwitch}
        onClick={() => to && onSwitch(to)}
      >
        <Icon name={name} />
      </button>
    );
  };
  return (
    <span className="branches" role="group" aria-label="Versions">
      {step(-1, "left", "Version before")}
      <span>
        {at + 1} / {siblings.length}
      </span>
      {step(1, "right", "Version after")}
    </span>
  );
}
