import { useMutation } from "@tanstack/react-query";
import { ApiError, api, sentence } from "../api/client";
import { useCommands } from "../app/commands";
import { askForModels, client, settingsQuery } from "../app/queries";
import type { AgentRuntimePatch, AgentRuntimeView } from "../contracts";
import { Icon } from "../ui/Icon";
import { say } from "../ui/toasts";
import { plural } from "../ui/words";
import { type Draft, afterSave, changes, conflicts, errors, patchOf } from "./draft";
import { setDraft } from "./draftStore";
import type { Field } from "./fields";

/** Saving of the runtime settings: `refused` says by field what the server did not accept. */
export function useSave(stored: AgentRuntimeView | undefined, draft: Draft) {
  const save = useMutation({
    mutationFn: ({ patch }: { patch: AgentRuntimePatch; sent: Draft }) =>
      api.patch<AgentRuntimeView>("/api/settings/agent-runtime", patch),
    onSuccess: (view, { sent }) => {
      client.setQueryData(settingsQuery.queryKey, view);
      askForModels();
      setDraft((now) => afterSave(now, sent, view));
      say("Saved. The next run uses it.");
    },
    onError: (error) => {
      if (!(error instanceof ApiError)) return;
      const theirs = error.body["settings"];
      if (error.status === 409 && theirs) client.setQueryData(settingsQuery.queryKey, theirs as AgentRuntimeView);
    },
  });
  // A refusal is about what was sent, not about what is typed now.
  const refusal = save.error instanceof ApiError && save.variables?.sent === draft ? save.error : null;
  const refused: Partial<Record<Field, string>> = refusal?.field ? { [refusal.field]: refusal.message } : {};
  return {
    save: () => {
      if (stored) save.mutate({ patch: patchOf(draft, stored), sent: draft });
    },
    reset: () => save.reset(),
    busy: save.isPending,
    error: save.error,
    refused,
  };
}

/** At the foot while something is not saved: how much, what stands against it, Discard and Save. */
export function SaveBar({ stored, draft, saving }: { stored: AgentRuntimeView; draft: Draft; saving: ReturnType<typeof useSave> }) {
  const changed = changes(draft, stored);
  const disputed = conflicts(draft, stored).length;
  const wrong = Object.keys(errors(draft)).length;
  const canSave = changed.length > 0 && disputed === 0 && wrong === 0 && !saving.busy;
  useCommands(
    changed.length > 0
      ? [{ id: "save settings", title: "Save the settings", group: "Do", keys: "mod+enter", run: () => canSave && saving.save() }]
      : [],
  );
  if (changed.length === 0) return null;
  const discard = () => {
    saving.reset();
    setDraft(() => ({}));
  };
  return (
    <footer className="save-bar">
      <Icon name="pen" />
      <span className="grow" role="status">
        <span>{plural(changed.length, "change")}</span>
        {wrong > 0 && <span className="is-fail"> · {wrong === 1 ? "one is" : `${wrong} are`} out of bounds</span>}
        {disputed > 0 && <span className="is-wait"> · choose in {plural(disputed, "place")}</span>}
        {saving.error && disputed === 0 && wrong === 0 && <span className="is-fail"> · {why(saving.error)}</span>}
      </span>
      <button type="button" className="btn plain" onClick={discard}>
        Discard
      </button>
      <button type="button" className="btn primary" disabled={!canSave} onClick={saving.save}>
        {saving.busy ? "Saving…" : "Save"}
      </button>
    </footer>
  );
}

function why(error: Error): string {
  if (error instanceof ApiError && error.status === 409) {
    return "Other settings were stored meanwhile; they are shown now. Yours are kept: save again.";
  }
  return sentence(error);
}
