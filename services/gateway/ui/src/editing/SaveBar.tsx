import { ApiError, sentence } from "../api/client";
import { useCommands } from "../app/commands";
import { Icon } from "../ui/Icon";
import { plural } from "../ui/words";

/** How a save goes on, and what the last one said. */
export interface Saving {
  save: () => void;
  reset: () => void;
  busy: boolean;
  error: Error | null;
}

/** At the foot while something is not saved: how much, what stands against it, Discard and Save. */
export function SaveBar({
  what,
  changed,
  disputed,
  wrong,
  saving,
  overtaken,
  onDiscard,
}: {
  /** What is saved, as it stands after “the”. */
  what: string;
  /** How many fields differ, have another value stored meanwhile, or cannot be saved. */
  changed: number;
  disputed: number;
  wrong: number;
  saving: Saving;
  /** What is said when somebody else saved first. */
  overtaken: string;
  onDiscard: () => void;
}) {
  const canSave = changed > 0 && disputed === 0 && wrong === 0 && !saving.busy;
  useCommands([changed > 0 && { id: `save ${what}`, title: `Save the ${what}`, group: "Do", keys: "mod+enter", run: () => canSave && saving.save() }]);
  if (changed === 0) return null;
  const isOvertaken = saving.error instanceof ApiError && saving.error.code === "revision_conflict";
  return (
    <footer className="save-bar">
      <Icon name="pen" />
      <span className="grow" role="status">
        <span>{plural(changed, "change")}</span>
        {wrong > 0 && <span className="is-fail"> · {wrong === 1 ? "one is" : `${wrong} are`} out of bounds</span>}
        {disputed > 0 && <span className="is-wait"> · choose in {plural(disputed, "place")}</span>}
        {saving.error && disputed === 0 && wrong === 0 && (
          <span className="is-fail"> · {isOvertaken ? overtaken : sentence(saving.error)}</span>
        )}
      </span>
      <button
        type="button"
        className="btn plain"
        onClick={() => {
          saving.reset();
          onDiscard();
        }}
      >
        Discard
      </button>
      <button type="button" className="btn primary" disabled={!canSave} onClick={saving.save}>
        {saving.busy ? "Saving…" : "Save"}
      </button>
    </footer>
  );
}
