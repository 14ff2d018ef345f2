import { type FormEvent, useId, useState } from "react";
import { ApiError, api, sentence } from "../api/client";
import { client, workspacesQuery } from "../app/queries";
import type { WorkspaceRow, WorkspaceView } from "../contracts";
import { Dialog } from "../ui/Dialog";

/** Give a workspace another name; its folder stays where it is. When another device was faster, both names are shown. */
export function RenameWorkspace({ workspace, onClose }: { workspace: WorkspaceRow; onClose: () => void }) {
  const id = useId();
  // What the person saw when they began: events may change the workspace behind the dialog.
  const [revision, setRevision] = useState(workspace.revision);
  const [name, setName] = useState(workspace.name);
  const [theirs, setTheirs] = useState<string | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    if (busy) return;
    setBusy(true);
    setError("");
    try {
      await api.patch<WorkspaceView>(`/api/workspaces/${workspace.id}`, { revision, name: name.trim() });
      void client.invalidateQueries({ queryKey: workspacesQuery.queryKey });
      onClose();
    } catch (failure) {
      const stored = failure instanceof ApiError ? (failure.body["workspace"] as WorkspaceView | undefined) : undefined;
      if (stored) {
        setRevision(stored.revision);
        setTheirs(stored.name);
      } else {
        setError(sentence(failure));
      }
    } finally {
      setBusy(false);
    }
  };

  return (
    <Dialog label="Rename the workspace" onClose={onClose}>
      <form onSubmit={submit}>
        <h2>Rename the workspace</h2>
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
            maxLength={120}
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
