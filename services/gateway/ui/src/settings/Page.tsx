import { useState } from "react";
import { lettersAreOn, setLetters, spell } from "../app/commands";
import { type Theme, setTheme, theme } from "../app/theme";

const THEMES: { value: Theme; label: string }[] = [
  { value: "system", label: "As the system" },
  { value: "light", label: "Light" },
  { value: "dark", label: "Dark" },
];

/** How this page looks and listens, on this device. */
export function Page() {
  const [chosen, setChosen] = useState(theme);
  const [letters, chooseLetters] = useState(lettersAreOn);
  return (
    <div className="scroll">
      <div className="settings-page">
        <p className="dim">These are kept in this browser only.</p>
        <div className="field setting">
          <span className="label" id="theme-label">
            Light or dark
          </span>
          <div className="segments" role="radiogroup" aria-labelledby="theme-label">
            {THEMES.map(({ value, label }) => (
              <label key={value} {...(value === chosen ? { "aria-current": true } : {})}>
                <input
                  type="radio"
                  name="theme"
                  className="sr"
                  checked={value === chosen}
                  onChange={() => {
                    setTheme(value);
                    setChosen(value);
                  }}
                />
                {label}
              </label>
            ))}
          </div>
        </div>
        <div className="field setting">
          <span className="label" id="letters-label">
            Single letters as keys
          </span>
          <label className="check">
            <input
              type="checkbox"
              checked={letters}
              aria-describedby="letters-hint"
              onChange={(event) => {
                setLetters(event.target.checked);
                chooseLetters(event.target.checked);
              }}
            />
            {letters ? "On" : "Off"}
          </label>
          <p id="letters-hint" className="hint">
            <kbd>G</kbd> then <kbd>C</kbd> opens the chats, <kbd>?</kbd> lists all keys. Switch them off if you dictate.{" "}
            {spell("mod+k")} and other chords stay.
          </p>
        </div>
      </div>
    </div>
  );
}
