import { type FormEvent, useId, useState } from "react";
import { sentence } from "../api/client";
import { Dialog } from "../ui/Dialog";
import { storedInstead } from "./revisions";

interface Named {
  name: string;
  revision: number;
}

/** Give something another name. When another device was faster, both names are shown. */
export function Rename<View extends { revision: number }>({
  what,
  of,
  longest,
  field,
  nameIn,
  save,
  keep,
  onClose,
}: {
  /** What it is, as it stands after “the”. */
  what: string;
  of: Named;
  longest: number;
  /** What it is called in the answer that tells of another revision. */
  field: string;
  nameIn: (stored: View) => string;
  save: (name: string, revision: number) => Promise<View>;
  /** Show it as it is stored. */
  keep: (stored: View) => void;
  onClose: () => void;
}) {
  const id = useId();
  // What the person saw when they began: events may change it behind the dialog.
  const [seen] = useState(of);
  const [name, setName] = useState(seen.name);
  const [revision, setRevision] = useState(seen.revision);
  const [theirs, setTheirs] = useState<string | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);

  const rename = async (against: number): Promise<void> => {
    const wanted = name.trim();
    try {
      keep(await save(wanted, against));
      onClose();
    } catch (failure) {
      const stored = storedInstead<View>(failure, field);
      if (!stored || stored.revision === against) throw failure;
      keep(stored);
      setRevision(stored.revision);
      // Only the name is asked about; another change is no reason to ask.
      if ([seen.name, wanted].includes(nameIn(stored))) return rename(stored.revision);
      setTheirs(nameIn(stored));
    }
  };

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setError("");
    try {
      await rename(revision);
    } catch (failure) {
      setError(sentence(failure));
    } finally {
      setBusy(false);
    }
  };

  return (
    <Dialog label={`Rename the ${what}`} onClose={onClose}>
      <form onSubmit={submit}>
        <h2>Rename the {what}</h2>
        {theirs !== null && (
          <p role="alert" className="is-wait">
            It was renamed elsewhere to “{theirs}” while you were writing. Save yours, or keep that.
          </p>
        )}
        <div className="field">
          <label htmlFor={id}>{theirs === null ? "Name" : "Your name for it"}</label>
          <input
            id={id}
            className="input"
            autoFocus
            autoComplete="off"
            maxLength={longest}
            value={name}
            onFocus={(event) => event.target.select()}
            onChange={(event) => setName(event.target.value)}
            aria-invalid={error !== ""}
            aria-describedby={`${id}-error`}
          />
          <p id={`${id}-error`} className="error" role="alert">
            {error}
          </p>
        </div>
        <div className="actions">
          <button type="button" className="btn" onClick={onClose}>
            {theirs === null ? "Cancel" : `Keep “${theirs}”`}
          </button>
          <button type="submit" className="btn primary" disabled={!name.trim() || busy}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
