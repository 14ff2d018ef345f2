import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useRef } from "react";
import { modelsQuery, workspacesQuery } from "../app/queries";
import { Icon, StopIcon } from "../ui/Icon";
import { Menu } from "../ui/Menu";
import { WritingBox } from "./WritingBox";

const LONGEST = 200_000;

export interface ComposerProps {
  text: string;
  onText: (text: string) => void;
  onSend: () => void;
  onStop: () => void;
  isRunning: boolean;
  isStopping: boolean;
  /** Why nothing can be sent now, in words; null when it can. */
  blocked: string | null;
  model: string | null;
  onModel: (model: string | null) => void;
  workspaceId: string | null;
  /** Null where the chat has its workspace already. */
  onWorkspace: ((id: string) => void) | null;
  notice: ReactNode;
}

/** Where a person writes; what is written stays on this device until it is sent. */
export function Composer(props: ComposerProps) {
  const field = useRef<HTMLTextAreaElement>(null);
  return (
    <WritingBox
      field={field}
      label="Write to the orchestrator"
      placeholder={props.blocked ?? "Ask about this workspace, or give it work."}
      text={props.text}
      longest={LONGEST}
      canSend={!props.isRunning && props.blocked === null}
      onText={props.onText}
      onSend={props.onSend}
      notice={props.notice}
      instead={
        props.isRunning && (
          <button type="button" className="btn dense" onClick={props.onStop} disabled={props.isStopping} title="Shift+Esc">
            <StopIcon />
            {props.isStopping ? "Stopping…" : "Stop turn"}
          </button>
        )
      }
    >
      <WorkspaceChoice id={props.workspaceId} note="The files this chat works with" onChoose={props.onWorkspace} />
      <ModelChoice model={props.model} onChoose={props.onModel} />
    </WritingBox>
  );
}

/** Which files are worked with: to be chosen, or as they were chosen. */
export function WorkspaceChoice({ id, note, onChoose }: { id: string | null; note: string; onChoose: ((id: string) => void) | null }) {
  const workspaces = useQuery(workspacesQuery).data?.items ?? [];
  const chosen = workspaces.find((each) => each.id === id) ?? workspaces.find((each) => id === null && each.isDefault);
  const name = chosen?.name ?? id ?? "…";
  if (!onChoose) {
    return (
      <span className="choice" title="A chat stays in its workspace">
        <Icon name="folder" />
        <span className="cut">{name}</span>
      </span>
    );
  }
  return (
    <Menu
      label={`Workspace: ${name}`}
      className="choice"
      note={note}
      items={workspaces.map((each) => ({
        label: each.name,
        checked: each.id === chosen?.id,
        onSelect: () => onChoose(each.id),
      }))}
    >
      <Icon name="folder" />
      <span className="cut">{name}</span>
      <Icon name="down" />
    </Menu>
  );
}

function ModelChoice({ model, onChoose }: { model: string | null; onChoose: (model: string | null) => void }) {
  const models = useQuery(modelsQuery).data;
  const fallback = models?.defaultModel ?? models?.models[0] ?? null;
  const shown = model ?? fallback ?? "no model";
  return (
    <Menu
      label={`Model: ${shown}`}
      className="choice"
      note={models?.known === false ? models.note : "Answers in this chat, from the next message on"}
      items={[
        {
          label: fallback ? `Default: ${fallback}` : "Default",
          checked: model === null,
          onSelect: () => onChoose(null),
        },
        ...(models?.models ?? []).map((each) => ({
          label: each,
          checked: each === model,
          onSelect: () => onChoose(each),
        })),
      ]}
    >
      <Icon name="model" />
      <span className="cut">{shown}</span>
      <Icon name="down" />
    </Menu>
  );
}
