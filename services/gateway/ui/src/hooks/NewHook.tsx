import { useLocation } from "wouter";
import { api } from "../api/client";
import type { HookList, HookView } from "../contracts";
import { CreateBar } from "../editing/CreateBar";
import { useCreating } from "../editing/useCreating";
import { say } from "../ui/toasts";
import { Fields } from "./Fields";
import { setDraft, useDraft } from "./draftStore";
import { BLANK, FIELDS, LABELS, NEW, bodyOf, errors, shown } from "./form";
import { keepHook } from "./queries";

/** A hook that is not stored yet. */
export function NewHook({ places }: { places: HookList }) {
  const [, navigate] = useLocation();
  const draft = useDraft(NEW);
  const form = shown(BLANK, draft);
  const creating = useCreating({
    draft,
    fields: FIELDS,
    problems: errors(form),
    send: () => api.post<HookView>("/api/hooks", bodyOf(form)),
    onCreated: (hook) => {
      setDraft(NEW, () => ({}));
      keepHook(hook);
      navigate(`/settings/hooks/${hook.id}`, { replace: true });
      say(`“${hook.name}” is added. The next run uses it.`);
    },
  });
  return (
    <>
      <div className="scroll">
        <div className="settings-page">
          <Fields form={{ id: NEW, stored: BLANK, draft, wrong: creating.wrong, isNew: true }} hasSecret={false} places={places} />
        </div>
      </div>
      <CreateBar
        creating={creating}
        labels={LABELS}
        command="Create the hook"
        action="Create"
        busy="Creating…"
        onDiscard={() => {
          setDraft(NEW, () => ({}));
          navigate("/settings/hooks");
        }}
      >
        A new hook
      </CreateBar>
    </>
  );
}
