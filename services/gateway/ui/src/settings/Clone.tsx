import { useMutation } from "@tanstack/react-query";
import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import { ApiError, api, sentence } from "../api/client";
import { isOver, noteJob, useJobs } from "../app/jobs";
import { client } from "../app/queries";
import type { JobView } from "../contracts";
import { Icon } from "../ui/Icon";
import { JobProgress } from "../ui/JobProgress";
import { say } from "../ui/toasts";
import { nameOf } from "./workspaceNames";

const KIND = "workspaces-clone";
// A failure is shown for so long to who comes back to the page.
const SHOWN_MS = 3_600_000;

/** Clone a repository into a new folder, which becomes a workspace. */
export function Clone() {
  const id = useId();
  const [url, setUrl] = useState("");
  const [directory, setDirectory] = useState("");
  const [name, setName] = useState("");
  const folder = directory.trim() || nameOf(url).replace(/\.git$/, "");
  const clone = useMutation({
    mutationFn: () =>
      api.post<JobView>("/api/workspaces", {
        url: url.trim(),
        directory: directory.trim() || null,
        name: name.trim() || null,
      }),
    onSuccess: (job) => {
      noteJob(client, job);
      setUrl("");
      setDirectory("");
      setName("");
    },
  });
  const field = clone.error instanceof ApiError ? clone.error.field : null;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    clone.mutate();
  };
  const bound = (part: "url" | "directory" | "name", set: (value: string) => void) => ({
    id: `${id}-${part}`,
    autoComplete: "off",
    "aria-invalid": field === part,
    "aria-describedby": `${id}-${part}-hint`,
    onChange: (event: { target: { value: string } }) => {
      set(event.target.value);
      clone.reset();
    },
  });
  const hint = (part: string, text: string) => (
    <p id={`${id}-${part}-hint`} className={field === part ? "error" : "hint"} role={field === part ? "alert" : undefined}>
      {field === part && clone.error ? sentence(clone.error) : text}
    </p>
  );

  return (
    <section className="settings-group" aria-labelledby={`${id}-title`}>
      <h2 id={`${id}-title`}>Clone a repository</h2>
      <form className="connect" onSubmit={submit}>
        <div className="field">
          <label htmlFor={`${id}-url`}>Address</label>
          <input
            {...bound("url", setUrl)}
            className="input mono"
            autoCapitalize="off"
            spellCheck={false}
            maxLength={2_000}
            placeholder="https://example.org/group/project.git"
            value={url}
          />
          {hint("url", "https, ssh, git or user@host:path, without a password: popagent uses the keys of the account that it runs as.")}
        </div>
        <div className="two">
          <div className="field">
            <label htmlFor={`${id}-directory`}>New folder</label>
            <input
              {...bound("directory", setDirectory)}
              className="input mono"
              autoCapitalize="off"
              spellCheck={false}
              maxLength={100}
              placeholder={folder || "project"}
              value={directory}
            />
            {hint("directory", "Below the workspace root.")}
          </div>
          <div className="field">
            <label htmlFor={`${id}-name`}>Workspace name</label>
            <input {...bound("name", setName)} className="input" maxLength={120} placeholder={folder || "Project"} value={name} />
            {hint("name", "How chats call it.")}
          </div>
        </div>
        {clone.error && !["url", "directory", "name"].includes(field ?? "") && (
          <p className="is-fail small" role="alert">
            {sentence(clone.error)}
          </p>
        )}
        <div className="line">
          <button type="submit" className="btn primary" disabled={!url.trim() || clone.isPending}>
            <Icon name="download" />
            {clone.isPending ? "Asking…" : "Clone"}
          </button>
        </div>
      </form>
      <Clones />
    </section>
  );
}

/** Clones that are under way, and those that failed a moment ago. */
function Clones() {
  const jobs = useJobs(KIND);
  const [dismissed, setDismissed] = useState<readonly string[]>([]);
  const watched = useRef(new Set<string>());
  useEffect(() => {
    for (const job of jobs) {
      if (!isOver(job)) watched.current.add(job.id);
      else if (watched.current.delete(job.id) && job.state === "completed") {
        say(`“${String(job.result?.["path"] ?? "")}” is cloned. Choose it in a new chat.`);
      }
    }
  }, [jobs]);
  const shown = jobs.filter(
    (job) =>
      !isOver(job) ||
      (job.state === "failed" && !dismissed.includes(job.id) && Date.now() - Date.parse(job.updatedAt) < SHOWN_MS),
  );
  if (shown.length === 0) return null;
  return (
    <ul className="card workspaces" aria-label="Clones">
      {shown.map((job) => (
        <li key={job.id} className="clone">
          <Icon name={job.state === "failed" ? "alert" : "download"} />
          <div className="workspace-name">
            <span className="strong cut">{job.title}</span>
            {job.state === "failed" ? (
              <p className="is-fail small" role="alert">
                {job.error}
              </p>
            ) : (
              <JobProgress job={job} />
            )}
          </div>
          {job.state === "failed" && (
            <button type="button" className="btn plain dense square" aria-label="Dismiss" onClick={() => setDismissed([...dismissed, job.id])}>
              <Icon name="close" />
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}
