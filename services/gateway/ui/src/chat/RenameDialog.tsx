import { type FormEvent, useState } from "react";
import { ApiError, api, sentence } from "../api/client";
import { place, summaryOf } from "../app/queries";
import type { SessionSummary, SessionView } from "../contracts";
import { Dialog } from "../ui/Dialog";

const LONGEST = 200;

/** Name a chat; later messages do not rename it. When another device was faster, both names are shown. */
export function RenameDialog({ session, onClose }: { session: SessionSummary; onClose: () => void }) {
  // What the person saw when they began: events may change the chat behind the dialog.
  const [seen] = useState(session);
  const [title, setTitle] = useState(seen.title);
  const [revision, setRevision] = useState(seen.revision);
  const [theirs, setTheirs] = useState<string | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);

  const save = async (against: number): Promise<void> => {
    const wanted = title.trim();
    try {
      place(summaryOf(await api.patch<SessionView>(`/api/sessions/${seen.id}`, { revision: against, title: wanted })));
      onClose();
    } catch (failure) {
      const conflict = failure instanceof ApiError && failure.code === "revision_conflict";
      const stored = conflict ? (failure.body["session"] as SessionSummary | undefined) : undefined;
      if (!stored || stored.revision === against) throw failure;
      place(summaryOf(stored));
      setRevision(stored.revision);
      // Only the name is asked about; another change of the chat is no reason to ask.
      if (stored.title === seen.title || stored.title === wanted) return save(stored.revision);
      setTheirs(stored.title);
    }
  };

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setError("");
    try {
      await save(revision);
    } catch (failure) {
      setError(sentence(failure));
    } finally {
      setBusy(false);
    }
  };

  return (
    <Dialog label="Rename the chat" onClose={onClose}>
      <form onSubmit={submit}>
        <h2>Rename the chat</h2>
        {theirs !== null && (
          <p role="alert" className="is-wait">
            It was renamed elsewhere to “{theirs}” while you were writing. Save yours, or keep that.
          </p>
        )}
        <div className="field">
          <label htmlFor="title">{theirs === null ? "Name" : "Your name for it"}</label>
          <input
            id="title"
            className="input"
            autoFocus
            maxLength={LONGEST}
            value={title}
            onFocus={(event) => event.target.select()}
            onChange={(event) => setTitle(event.target.value)}
            aria-invalid={error !== ""}
            aria-describedby="title-error"
          />
          <p id="title-error" className="error" role="alert">
            {error}
          </p>
        </div>
        <div className="actions">
          <button type="button" className="btn" onClick={onClose}>
            {theirs === null ? "Cancel" : `Keep “${theirs}”`}
          </button>
          <button type="submit" className="btn primary" disabled={!title.trim() || busy}>
            Save
          </button>
        </div>
      </form>
    </Dialog>
  );
}
