import { useId } from "react";

/** One of a few: all of them are in sight. */
export function Segments({
  value,
  choices,
  labelledBy,
  describedBy,
  disabled = false,
  onChange,
}: {
  value: string;
  choices: Readonly<Record<string, string>>;
  labelledBy: string;
  describedBy?: string | undefined;
  disabled?: boolean;
  onChange: (choice: string) => void;
}) {
  const name = useId();
  return (
    <div className="segments" role="radiogroup" aria-labelledby={labelledBy} aria-describedby={describedBy}>
      {Object.entries(choices).map(([choice, label]) => (
        <label key={choice} {...(choice === value ? { "aria-current": true } : {})}>
          <input type="radio" name={name} className="sr" checked={choice === value} disabled={disabled} onChange={() => onChange(choice)} />
          {label}
        </label>
      ))}
    </div>
  );
}
