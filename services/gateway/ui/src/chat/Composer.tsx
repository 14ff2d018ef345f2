import { useQuery } from "@tanstack/react-query";
import { type KeyboardEvent, type ReactNode, useEffect, useRef } from "react";
import { modelsQuery, workspacesQuery } from "../app/queries";
import { Icon, StopIcon } from "../ui/Icon";
import { Menu } from "../ui/Menu";
import { COARSE, useMedia } from "../ui/media";

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
  const { text, onText, onSend, isRunning, isStopping, blocked } = props;
  const field = useRef<HTMLTextAreaElement>(null);
  const canSend = text.trim() !== "" && !isRunning && blocked === null && text.length <= LONGEST;
  const isTouch = useMedia(COARSE);

  useEffect(() => {
    if (!isTouch) field.current?.focus();
  }, [isTouch]);

  const onKeyDown = (event: KeyboardEvent) => {
    // The single keys work outside of it.
    if (event.key === "Escape" && !event.shiftKey) {
      event.preventDefault();
      field.current?.blur();
      return;
    }
    if (event.key !== "Enter" || event.nativeEvent.isComposing || event.shiftKey) return;
    // On a phone Enter is a new line; there the button sends.
    if (isTouch && !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    if (canSend) onSend();
  };

  return (
    <form
      className="composer"
      onSubmit={(event) => {
        event.preventDefault();
        if (canSend) onSend();
      }}
    >
      {props.notice}
      <div className="composer-box">
        <textarea
          ref={field}
          id="composer"
          className="grows"
          rows={1}
          dir="auto"
          aria-label="Write to the orchestrator"
          placeholder={blocked ?? "Ask about this workspace, or give it work."}
          value={text}
          onChange={(event) => onText(event.target.value)}
          onKeyDown={onKeyDown}
        />
        <div className="line">
          <WorkspaceChoice id={props.workspaceId} onChoose={props.onWorkspace} />
          <ModelChoice model={props.model} onChoose={props.onModel} />
          <span className="end line">
            {text.length > LONGEST && <span className="xs is-fail">At most {LONGEST.toLocaleString()} characters</span>}
            {isRunning ? (
              <button type="button" className="btn dense" onClick={props.onStop} disabled={isStopping} title="Shift+Esc">
                <StopIcon />
                {isStopping ? "Stopping…" : "Stop turn"}
              </button>
            ) : (
              <button type="submit" className="btn primary dense" disabled={!canSend}>
                <Icon name="up" />
                Send
              </button>
            )}
          </span>
        </div>
      </div>
    </form>
  );
}

function WorkspaceChoice({ id, onChoose }: { id: string | null; onChoose: ((id: string) => void) | null }) {
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
      note="The files this chat works with"
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
