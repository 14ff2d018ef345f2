import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { api, sentence } from "../api/client";
import { isOver, noteJob, useJobs } from "../app/jobs";
import { client } from "../app/queries";
import type { JobView, WorkspaceRow } from "../contracts";
import { Dialog } from "../ui/Dialog";
import { JobProgress } from "../ui/JobProgress";

const KIND = "workspaces-delete-sessions";

interface Outcome {
  deleted: number;
  keptCount: number;
  kept: { id: string; title: string; reason: string }[];
}

/** The deletion that is under way in a workspace. */
export function useDeletion(workspaceId: string): JobView | undefined {
  return useJobs(KIND).find((job) => job.about === workspaceId && !isOver(job));
}

/** Delete every chat of a workspace; its name is typed before, since nothing of it can be undone. */
export function DeleteChats({ workspace, onClose }: { workspace: WorkspaceRow; onClose: () => void }) {
  const id = useId();
  const [typed, setTyped] = useState("");
  const known = useJobs(KIND);
  const underWay = useDeletion(workspace.id);
  const [jobId, setJobId] = useState(underWay?.id ?? null);
  const begin = useMutation({
    mutationFn: () => api.delete<JobView>(`/api/workspaces/${workspace.id}/sessions`),
    onSuccess: (job) => {
      noteJob(client, job);
      setJobId(job.id);
    },
  });
  const job = known.find((each) => each.id === jobId) ?? begin.data;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (typed.trim() === workspace.name.trim()) begin.mutate();
  };

  return (
    <Dialog label={`Delete all chats of ${workspace.name}`} onClose={onClose}>
      {job ? (
        <div className="inside" aria-live="polite">
          <h2>{isOver(job) ? (job.state === "failed" ? "Not all chats could be deleted" : "Done") : "Deleting the chats"}</h2>
          {!isOver(job) && (
            <>
              <JobProgress job={job} />
              <p className="dim small">It goes on when you leave this page.</p>
            </>
          )}
          {job.state === "failed" && <p className="is-fail">{job.error}</p>}
          {job.state === "completed" && <Result outcome={job.result as unknown as Outcome} />}
          <div className="actions">
            <button type="button" className="btn" onClick={onClose} autoFocus>
              Close
            </button>
          </div>
        </div>
      ) : (
        <form onSubmit={submit}>
          <h2>Delete all chats of “{workspace.name}”?</h2>
          <p className="dim">
            Every chat of this workspace is deleted for good, archived ones too; what runs in them is stopped. The workspace and
            its files stay, and so do chats that are begun after this.
          </p>
          <div className="field">
            <label htmlFor={`${id}-typed`}>Type the name of the workspace to confirm</label>
            <input
              id={`${id}-typed`}
              className="input"
              autoComplete="off"
              autoCapitalize="off"
              spellCheck={false}
              autoFocus
              placeholder={workspace.name}
              value={typed}
              onChange={(event) => setTyped(event.target.value)}
            />
            {begin.error && (
              <p className="error" role="alert">
                {sentence(begin.error)}
              </p>
            )}
          </div>
          <div className="actions">
            <button type="button" className="btn" onClick={onClose}>
              Cancel
            </button>
            <button type="submit" className="btn danger" disabled={typed.trim() !== workspace.name.trim() || begin.isPending}>
              Delete all chats
            </button>
          </div>
        </form>
      )}
    </Dialog>
  );
}

function Result({ outcome }: { outcome: Outcome }) {
  return (
    <>
      <p>{outcome.deleted === 1 ? "1 chat is deleted." : `${outcome.deleted.toLocaleString("en")} chats are deleted.`}</p>
      {outcome.keptCount > 0 && (
        <>
          <p className="is-wait">{outcome.keptCount === 1 ? "1 chat was kept:" : `${outcome.keptCount} chats were kept:`}</p>
          <ul className="kept small">
            {outcome.kept.map((each) => (
              <li key={each.id}>
                {each.title || "New chat"}: {each.reason}
              </li>
            ))}
          </ul>
        </>
      )}
    </>
  );
}
