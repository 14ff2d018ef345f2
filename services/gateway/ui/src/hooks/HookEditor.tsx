import { useLocation } from "wouter";
import type { HookList, HookView } from "../contracts";
import { SaveBar } from "../editing/SaveBar";
import { deleteSoon } from "../editing/deleteSoon";
import { refusedBy } from "../editing/refused";
import { useSaving } from "../editing/useSaving";
import { Icon } from "../ui/Icon";
import { exactly } from "../ui/words";
import { Fields } from "./Fields";
import { Trial } from "./Trial";
import { setDraft, useDraft } from "./draftStore";
import { type Draft, FIELDS, afterSave, changes, conflicts, errors, formOf, patchOf, shown } from "./form";
import { dropHook, keepHook, leaving, loadHooks } from "./queries";

/** A stored hook as a form, and what it makes of an example. */
export function HookEditor({ hook, places }: { hook: HookView; places: HookList }) {
  const [, navigate] = useLocation();
  const draft = useDraft(hook.id);
  const stored = formOf(hook);
  const saving = useSaving<HookView, Draft>({
    path: `/api/hooks/${hook.id}`,
    name: "hook",
    draft,
    patch: () => patchOf(draft, hook),
    keep: keepHook,
    onSaved: (saved, sent) => setDraft(hook.id, (now) => afterSave(now, sent, formOf(saved))),
    onGone: loadHooks,
    told: "Saved. The next run uses it.",
  });
  const wrong = errors(shown(stored, draft));
  const changed = changes(draft, stored).length;
  const drop = () => {
    const back = () => {
      leaving.delete(hook.id);
      loadHooks();
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
          <Fields form={{ id: hook.id, stored, draft, wrong: { ...refusedBy(saving.refusal, FIELDS), ...wrong }, isNew: false }} hasSecret={hook.hasSecret} places={places} />
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
