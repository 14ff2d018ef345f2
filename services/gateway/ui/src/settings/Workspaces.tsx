import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useId, useState } from "react";
import { useLocation } from "wouter";
import { ApiError, api, sentence } from "../api/client";
import { client, workspacesQuery } from "../app/queries";
import type { WorkspaceCandidates, WorkspaceRow, WorkspaceView } from "../contracts";
import { Confirm } from "../ui/Dialog";
import { Icon } from "../ui/Icon";
import { JobProgress } from "../ui/JobProgress";
import { Menu, type MenuItem } from "../ui/Menu";
import { attempt } from "../ui/attempt";
import { say } from "../ui/toasts";
import { exactly } from "../ui/words";
import { Clone } from "./Clone";
import { DeleteChats, useDeletion } from "./DeleteChats";
import { Loading } from "./Loading";
import { RenameWorkspace } from "./RenameWorkspace";
import { nameOf } from "./workspaceNames";

const candidatesQuery = {
  queryKey: ["workspace-candidates"],
  queryFn: ({ signal }: { signal: AbortSignal }) => api.get<WorkspaceCandidates>("/api/workspaces/candidates", signal),
  // Folders come and go without anybody telling.
  staleTime: 0,
};

/** The folders that agents work in, and how another one is registered. */
export function Workspaces() {
  const workspaces = useQuery({ ...workspacesQuery, staleTime: 0 });
  return (
    <div className="scroll">
      <div className="settings-page">
        <p className="dim">
          A workspace is a folder below the workspace root of popagent. Every chat belongs to one, and agents read and
          change its files, nothing outside of it.
        </p>
        <Loading query={workspaces} what="the workspaces">
          {({ items }) =>
            items.length === 0 ? (
              <div className="empty">
                <h2>No workspace yet.</h2>
                <p>Clone a repository below, or register the folder of a project, and ask about it in a chat.</p>
              </div>
            ) : (
              <ul className="card workspaces" aria-label="Workspaces">
                {items.map((workspace) => (
                  <Workspace key={workspace.id} workspace={workspace} />
                ))}
              </ul>
            )
          }
        </Loading>
        <Clone />
        <Register root={workspaces.data?.root ?? null} />
      </div>
    </div>
  );
}

function Workspace({ workspace }: { workspace: WorkspaceRow }) {
  const [asking, setAsking] = useState<"rename" | "chats" | "forget" | null>(null);
  const [, navigate] = useLocation();
  const deletion = useDeletion(workspace.id);
  return (
    <li>
      <Icon name={workspace.isRepository ? "branch" : "folder"} />
      <div className="workspace-name">
        <span className="line">
          <span className="strong cut">{workspace.name}</span>
          {workspace.isDefault && <span className="chip">default</span>}
        </span>
        <span className="xs faint cut mono" title={`Registered ${exactly(workspace.createdAt)}`}>
          {workspace.path}
        </span>
        {deletion && <JobProgress job={deletion} />}
      </div>
      {workspace.exists ? (
        workspace.isRepository && (
          <span className="xs dim cut workspace-branch">{workspace.branch ? `on ${workspace.branch}` : "on no branch"}</span>
        )
      ) : (
        <span className="chip fail">
          <Icon name="alert" />
          folder is missing
        </span>
      )}
      <Menu
        label={`Actions for ${workspace.name}`}
        className="btn plain dense square"
        items={[
          { label: "See its tasks", icon: "tasks", onSelect: () => navigate(`/tasks?workspace=${workspace.id}`) },
          { label: "Rename…", icon: "pen", onSelect: () => setAsking("rename") },
          { label: "Delete all chats…", icon: "trash", danger: true, onSelect: () => setAsking("chats") },
          ...(workspace.isDefault
            ? []
            : [{ label: "Forget…", icon: "close", onSelect: () => setAsking("forget") } satisfies MenuItem]),
        ]}
      >
        <Icon name="more" className="thick" />
      </Menu>
      {asking === "rename" && <RenameWorkspace workspace={workspace} onClose={() => setAsking(null)} />}
      {asking === "chats" && <DeleteChats workspace={workspace} onClose={() => setAsking(null)} />}
      {asking === "forget" && (
        <Confirm
          title={`Forget “${workspace.name}”?`}
          text="Its folder and files stay where they are; it can be registered again. A workspace with chats is kept: delete them first."
          action="Forget"
          onConfirm={() => void attempt(forget(workspace))}
          onClose={() => setAsking(null)}
        />
      )}
    </li>
  );
}

async function forget(workspace: WorkspaceRow): Promise<void> {
  await api.delete(`/api/workspaces/${workspace.id}`);
  for (const queryKey of [workspacesQuery.queryKey, candidatesQuery.queryKey]) void client.invalidateQueries({ queryKey });
  say(`“${workspace.name}” is forgotten. Its folder ${workspace.path} stays.`);
}

function Register({ root }: { root: string | null }) {
  const id = useId();
  const candidates = useQuery(candidatesQuery);
  const [path, setPath] = useState("");
  const [name, setName] = useState<string | null>(null);
  const shownName = name ?? nameOf(path);
  const register = useMutation({
    mutationFn: () => api.post<WorkspaceView>("/api/workspaces", { name: shownName.trim(), path: path.trim() }),
    onSuccess: (workspace) => {
      for (const queryKey of [workspacesQuery.queryKey, candidatesQuery.queryKey]) void client.invalidateQueries({ queryKey });
      setPath("");
      setName(null);
      say(`“${workspace.name}” is registered. Choose it in a new chat.`);
    },
  });
  const field = register.error instanceof ApiError ? register.error.field : null;
  const items = candidates.data?.items ?? [];
  const choose = (chosen: string) => {
    setPath(chosen);
    setName(null);
    register.reset();
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    register.mutate();
  };

  return (
    <section className="settings-group">
      <div className="line">
        <h2 className="grow">Register a folder</h2>
        <button type="button" className="btn plain dense" disabled={candidates.isFetching} onClick={() => void candidates.refetch()}>
          <Icon name="retry" />
          {candidates.isFetching ? "Looking…" : "Look again"}
        </button>
      </div>
      {root && <Root path={root} />}
      {items.length > 0 && (
        <>
          <p className="small dim" id={`${id}-found`}>
            Below the workspace root and not registered yet{candidates.data?.complete === false ? ", the first of many" : ""}:
          </p>
          <div className="candidates" role="group" aria-labelledby={`${id}-found`}>
            {items.map((candidate) => (
              <button key={candidate.path} type="button" aria-pressed={candidate.path === path} onClick={() => choose(candidate.path)}>
                <Icon name={candidate.isRepository ? "branch" : "folder"} />
                <span className="cut mono">{candidate.path}</span>
                {candidate.isRepository && <span className="end xs faint cut">{candidate.branch ?? "no branch"}</span>}
              </button>
            ))}
          </div>
        </>
      )}
      {candidates.data && items.length === 0 && (
        <p className="small dim">
          Every folder below the workspace root is registered.
        </p>
      )}
      {candidates.error && <p className="small dim">{sentence(candidates.error)} The path can be typed all the same.</p>}
      <form className="connect" onSubmit={submit}>
        <div className="two">
          <div className="field">
            <label htmlFor={`${id}-path`}>Folder</label>
            <input
              id={`${id}-path`}
              className="input mono"
              autoComplete="off"
              autoCapitalize="off"
              spellCheck={false}
              maxLength={1_024}
              placeholder="my-project"
              value={path}
              aria-invalid={field === "path"}
              aria-describedby={`${id}-path-hint`}
              onChange={(event) => {
                setPath(event.target.value);
                register.reset();
              }}
            />
            <p id={`${id}-path-hint`} className={field === "path" ? "error" : "hint"} role={field === "path" ? "alert" : undefined}>
              {field === "path" && register.error ? sentence(register.error) : "Relative to the workspace root; it must exist."}
            </p>
          </div>
          <div className="field">
            <label htmlFor={`${id}-name`}>Name</label>
            <input
              id={`${id}-name`}
              className="input"
              autoComplete="off"
              maxLength={120}
              value={shownName}
              aria-invalid={field === "name"}
              aria-describedby={`${id}-name-hint`}
              onChange={(event) => {
                setName(event.target.value);
                register.reset();
              }}
            />
            <p id={`${id}-name-hint`} className={field === "name" ? "error" : "hint"} role={field === "name" ? "alert" : undefined}>
              {field === "name" && register.error ? sentence(register.error) : "How chats call it."}
            </p>
          </div>
        </div>
        {register.error && field !== "path" && field !== "name" && (
          <p className="is-fail small" role="alert">
            {sentence(register.error)}
          </p>
        )}
        <div className="line">
          <button type="submit" className="btn primary" disabled={!path.trim() || !shownName.trim() || register.isPending}>
            {register.isPending ? "Registering…" : "Register"}
          </button>
        </div>
      </form>
    </section>
  );
}

/** Where a project must lie on the machine that popagent runs on. */
function Root({ path }: { path: string }) {
  return (
    <p className="small dim">
      The workspace root is <code className="path">{path}</code> on the machine that popagent runs on, in a container the path
      inside of it (<code>POPAGENT_WORKSPACE_ROOT</code>). Put a project there, then look again.
    </p>
  );
}
