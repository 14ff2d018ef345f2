import type { ReactNode } from "react";
import { sentence } from "../api/client";
import { useCommands } from "../app/commands";
import { Icon, type IconName } from "../ui/Icon";
import type { Creating } from "./useCreating";

/** At the foot of what is not stored yet: why it cannot be created or what it is, Discard and the button that creates it. */
export function CreateBar<Field extends string>({
  icon = "pen",
  creating: { missing, failure, canCreate, isBusy, create },
  labels,
  command,
  action,
  busy,
  children,
  onDiscard,
}: {
  icon?: IconName;
  creating: Creating<Field>;
  /** What missing fields are called; without them nothing is said of those. */
  labels?: Readonly<Record<Field, string>>;
  /** What it is called among the commands. */
  command: string;
  /** What the button says, and what it says meanwhile. */
  action: string;
  busy: string;
  /** What is said when nothing is missing and nothing failed. */
  children: ReactNode;
  onDiscard: () => void;
}) {
  useCommands([{ id: command, title: command, group: "Do", keys: "mod+enter", run: create }]);
  return (
    <footer className="save-bar">
      <Icon name={icon} />
      <span className="grow" role="status">
        {failure ? (
          <span className="is-fail">{sentence(failure)}</span>
        ) : labels && missing.length > 0 ? (
          <span className="dim">Missing: {missing.map((field) => labels[field].toLowerCase()).join(", ")}</span>
        ) : (
          children
        )}
      </span>
      <button type="button" className="btn plain" onClick={onDiscard}>
        Discard
      </button>
      <button type="button" className="btn primary" disabled={!canCreate} onClick={create}>
        {isBusy ? busy : action}
      </button>
    </footer>
  );
}
