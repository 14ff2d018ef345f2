import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { Link } from "wouter";
import { useCommands } from "../app/commands";
import { nameOf, workspacesQuery } from "../app/queries";
import { Icon } from "../ui/Icon";
import { attempt } from "../ui/attempt";
import { useTitle } from "../ui/useTitle";
import { RenameDialog } from "./RenameDialog";
import { SessionMenu } from "./SessionMenu";
import { archive, download } from "./sessionActions";
import type { SessionState } from "./session";

/** The head of an open chat: its name, its workspace, and what can be done with it. */
export function ChatBar({
  state,
  isNew,
  onSearch,
}: {
  state: SessionState;
  isNew: boolean;
  onSearch: () => void;
}) {
  const [renaming, setRenaming] = useState(false);
  const summary = state.summary;
  const title = isNew || !summary ? "New chat" : nameOf(summary);
  const workspaces = useQuery(workspacesQuery).data?.items ?? [];
  const workspace = workspaces.find((each) => each.id === summary?.workspaceId);

  useTitle(title);

  useCommands(
    summary
      ? [
          { id: "chat rename", title: "Rename this chat", group: "Do", keys: "e", run: () => setRenaming(true) },
          {
            id: "chat archive",
            title: summary.archivedAt ? "Restore this chat" : "Archive this chat",
            group: "Do",
            run: () => void attempt(archive(summary, summary.archivedAt === null)),
          },
          {
            id: "chat markdown",
            title: "Export this chat as Markdown",
            group: "Do",
            run: () => void attempt(download(summary, "markdown")),
          },
          { id: "chat json", title: "Export this chat as JSON", group: "Do", run: () => void attempt(download(summary, "json")) },
        ]
      : [],
  );

  return (
    <header className="bar">
      <Link href={`/chat${location.search}`} className="btn plain square only-phone" aria-label="All chats">
        <Icon name="left" />
      </Link>
      <h1 className="cut" title={title}>
        {title}
      </h1>
      {workspace && workspaces.length > 1 && (
        <span className="chip not-phone">
          <Icon name="folder" />
          {workspace.name}
        </span>
      )}
      {summary?.archivedAt && (
        <>
          <span className="chip">Archived</span>
          <button type="button" className="btn dense" onClick={() => void attempt(archive(summary, false))}>
            Restore
          </button>
        </>
      )}
      <span className="end line">
        {summary && (
          <>
            <button
              type="button"
              className="btn plain dense square"
              aria-label="Search in this chat"
              title="Search in this chat (/)"
              onClick={onSearch}
            >
              <Icon name="search" />
            </button>
            <SessionMenu session={summary} isOpen />
          </>
        )}
      </span>
      {renaming && summary && <RenameDialog session={summary} onClose={() => setRenaming(false)} />}
    </header>
  );
}
