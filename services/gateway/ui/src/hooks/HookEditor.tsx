import { useMutation } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { ApiError, api } from "../api/client";
import type { HookList, HookView, PatchHookBody } from "../contracts";
import { SaveBar } from "../editing/SaveBar";
import { deleteSoon } from "../editing/deleteSoon";
import { client } from "../app/queries";
import { Icon } from "../ui/Icon";
import { say } from "../ui/toasts";
import { exactly } from "../ui/words";
import { Fields } from "./Fields";
import { Trial } from "./Trial";
import { setDraft, useDraft } from "./draftStore";
import { type Draft, type Field, afterSave, changes, conflicts, errors, formOf, patchOf, shown } from "./form";
import { dropHook, hooksQuery, keepHook, leaving } from "./queries";

/** A stored hook as a form, and what it makes of an example. */
export function HookEditor({ hook, places }: { hook: HookView; places: HookList }) {
  const [, navigate] = useLocation();
  const draft = useDraft(hook.id);
  const stored = formOf(hook);
  const saving = useSave(hook, draft);
  const wrong = errors(shown(stored, draft));
  const changed = changes(draft, stored).length;
  const drop = () => {
    const back = () => {
      leaving.delete(hook.id);
      void client.invalidateQueries({ queryKey: hooksQuery.queryKey });
    };
    leaving.add(hook.id);
    setDraft(hook.id, () => ({}));
    dropHook(hook.id);
    navigate("/settings/hooks", { replace: true });
    deleteSoon({ path: `/api/hooks/${hook.id}`, name: hook.name, back, gone: () => {} });
  };
  return (
    <>
      <div className="scroll">
        <div className="settings-page">
          <Fields form={{ id: hook.id, stored, draft, wrong: { ...saving.refused, ...wrong }, isNew: false }} hasSecret={hook.hasSecret} places={places} />
          <Trial key={hook.revision} hook={hook} isChanged={changed > 0} />
          <section className="settings-group">
            <div className="line wrap">
              <p className="xs faint grow">
                {hook.revision === 0 ? `Made ${exactly(hook.createdAt)}` : `Revision ${hook.revision}, saved ${exactly(hook.updatedAt)}`}
              </p>
              <button type="button" className="btn danger" onClick={drop}>
                <Icon name="trash" />
                Delete
              </button>
            </div>
          </section>
        </div>
      </div>
      <SaveBar
        what="hook"
        changed={changed}
        disputed={conflicts(draft, stored).length}
        wrong={Object.keys(wrong).length}
        saving={saving}
        overtaken="Somebody saved this hook meanwhile; that is shown now. Your changes are kept: save again."
        onDiscard={() => setDraft(hook.id, () => ({}))}
      />
    </>
  );
}

/** Saving of one hook: `refused` says by field what the server did not accept. */
function useSave(hook: HookView, draft: Draft) {
  const save = useMutation({
    mutationFn: ({ patch }: { patch: PatchHookBody; sent: Draft }) => api.patch<HookView>(`/api/hooks/${hook.id}`, patch),
    onSuccess: (saved, { sent }) => {
      keepHook(saved);
      setDraft(hook.id, (now) => afterSave(now, sent, formOf(saved)));
      say("Saved. The next run uses it.");
    },
    onError: (error) => {
      if (!(error instanceof ApiError)) return;
      if (error.status === 409 && error.body["hook"]) keepHook(error.body["hook"] as HookView);
      else if (error.status === 404) void client.invalidateQueries({ queryKey: hooksQuery.queryKey });
    },
  });
  // A refusal is about what was sent, not about what is typed now.
  const refusal = save.error instanceof ApiError && save.variables?.sent === draft ? save.error : null;
  const refused: Partial<Record<Field, string>> = refusal?.field ? { [refusal.field]: refusal.message } : {};
  return {
    save: () => save.mutate({ patch: patchOf(draft, hook), sent: draft }),
    reset: () => save.reset(),
    busy: save.isPending,
    error: save.error,
    refused,
  };
}
