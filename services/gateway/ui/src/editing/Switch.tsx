import { useState } from "react";
import { sentence } from "../api/client";
import { say } from "../ui/toasts";

/** Turns something of a list on and off at once, and back when that was refused. */
export function Switch({ name, isOn, turn }: { name: string; isOn: boolean; turn: (on: boolean) => Promise<void> }) {
  const [wanted, setWanted] = useState<boolean | null>(null);
  const change = async (on: boolean) => {
    setWanted(on);
    try {
      await turn(on);
    } catch (error) {
      say(`“${name}” could not be turned ${on ? "on" : "off"}: ${sentence(error)}`);
    }
    setWanted(null);
  };
  const shown = wanted ?? isOn;
  return (
    <label className="check">
      <input
        type="checkbox"
        role="switch"
        checked={shown}
        aria-label={`“${name}” is in use`}
        // Not disabled meanwhile: it would lose the focus.
        onChange={(event) => wanted === null && void change(event.target.checked)}
      />
      <span className="small" aria-hidden="true">
        {shown ? "On" : "Off"}
      </span>
    </label>
  );
}
