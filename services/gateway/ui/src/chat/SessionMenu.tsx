import { useState } from "react";
import { useLocation } from "wouter";
import { sentence } from "../api/client";
import type { SessionSummary } from "../contracts";
import { Icon } from "../ui/Icon";
import { Menu } from "../ui/Menu";
import { copy } from "../ui/CopyButton";
import { say } from "../ui/toasts";
import { RenameDialog } from "./RenameDialog";
import { archive, deleteSoon, download } from "./sessionActions";

/** What can be done with a chat as a whole. */
export function SessionMenu({
  session,
  isOpen,
  className = "",
}: {
  session: SessionSummary;
  isOpen: boolean;
  className?: string;
}) {
  const [, navigate] = useLocation();
  const [renaming, setRenaming] = useState(false);
  const attempt = (work: Promise<unknown>) => work.catch((error: unknown) => say(sentence(error)));
  const isArchived = session.archivedAt !== null;
  return (
    <>
      <Menu
        label={`Actions for ${session.title || "New chat"}`}
        className={`btn plain dense square ${className}`}
        items={[
          { label: "Rename", icon: "pen", onSelect: () => setRenaming(true) },
          {
            label: isArchived ? "Restore" : "Archive",
            icon: "archive",
            onSelect: () => void attempt(archive(session, !isArchived)),
          },
          {
            label: "Copy link",
            icon: "link",
            onSelect: () => void attempt(copy(`${location.origin}/chat/${session.id}`).then(() => say("Link copied."))),
          },
          { label: "Export as Markdown", icon: "download", onSelect: () => void attempt(download(session, "markdown")) },
          { label: "Export as JSON", icon: "download", onSelect: () => void attempt(download(session, "json")) },
          {
            label: "Delete",
            icon: "trash",
            danger: true,
            onSelect: () => {
              deleteSoon(session);
              if (isOpen) navigate("/chat", { replace: true });
            },
          },
        ]}
      >
        <Icon name="more" className="thick" />
      </Menu>
      {renaming && <RenameDialog session={session} onClose={() => setRenaming(false)} />}
    </>
  );
}
