import { askForModels, client, settingsQuery } from "../app/queries";
import type { AgentRuntimeView } from "../contracts";
import { SaveBar } from "../editing/SaveBar";
import { refusedBy } from "../editing/refused";
import { useSaving } from "../editing/useSaving";
import { type Draft, afterSave, changes, conflicts, errors, patchOf } from "./draft";
import { setDraft } from "./draftStore";
import { FIELDS } from "./fields";

/** Saving of the runtime settings: `refused` says by field what the server did not accept. */
export function useSave(stored: AgentRuntimeView | undefined, draft: Draft) {
  const saving = useSaving<AgentRuntimeView, Draft>({
    path: "/api/settings/agent-runtime",
    name: "settings",
    draft,
    patch: () => (stored ? patchOf(draft, stored) : {}),
    keep: (view) => client.setQueryData(settingsQuery.queryKey, view),
    onSaved: (view, sent) => {
      askForModels();
      setDraft((now) => afterSave(now, sent, view));
    },
    told: "Saved. The next run uses it.",
  });
  return { ...saving, refused: refusedBy(saving.refusal, FIELDS) };
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
