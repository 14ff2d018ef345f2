import { useState } from "react";
import { useLocation } from "wouter";
import { nameOf } from "../app/queries";
import type { SessionSummary } from "../contracts";
import { Icon } from "../ui/Icon";
import { Menu } from "../ui/Menu";
import { attempt } from "../ui/attempt";
import { copy } from "../ui/CopyButton";
import { PHONE } from "../ui/media";
import { say } from "../ui/toasts";
import { RenameDialog } from "./RenameDialog";
import { archive, deleteChat, download } from "./sessionActions";

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
  const isArchived = session.archivedAt !== null;
  return (
    <>
      <Menu
        label={`Actions for ${nameOf(session)}`}
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
            onSelect: () => void copy(`${location.origin}/chat/${session.id}`).then((done) =>
                say(done ? "Link copied." : "This browser did not let it be copied."),
              ),
          },
          { label: "Export as Markdown", icon: "download", onSelect: () => void attempt(download(session, "markdown")) },
          { label: "Export as JSON", icon: "download", onSelect: () => void attempt(download(session, "json")) },
          {
            label: "Delete",
            icon: "trash",
            danger: true,
            onSelect: () => {
              deleteChat(session);
              if (isOpen) navigate(matchMedia(PHONE).matches ? "/chat" : "/chat/new", { replace: true });
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
