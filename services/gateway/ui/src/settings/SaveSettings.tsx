import { useMutation } from "@tanstack/react-query";
import { ApiError, api } from "../api/client";
import { askForModels, client, settingsQuery } from "../app/queries";
import type { AgentRuntimePatch, AgentRuntimeView } from "../contracts";
import { SaveBar } from "../editing/SaveBar";
import { say } from "../ui/toasts";
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

/** The foot of every page that shows settings of the runtime. */
export function SaveSettings({ stored, draft, saving }: { stored: AgentRuntimeView; draft: Draft; saving: ReturnType<typeof useSave> }) {
  return (
    <SaveBar
      what="settings"
      changed={changes(draft, stored).length}
      disputed={conflicts(draft, stored).length}
      wrong={Object.keys(errors(draft)).length}
      saving={saving}
      overtaken="Other settings were stored meanwhile; they are shown now. Yours are kept: save again."
      onDiscard={() => setDraft(() => ({}))}
    />
  );
}
