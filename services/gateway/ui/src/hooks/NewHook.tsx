import { useMutation } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { ApiError, api, sentence } from "../api/client";
import { useCommands } from "../app/commands";
import type { HookList, HookView } from "../contracts";
import { Icon } from "../ui/Icon";
import { say } from "../ui/toasts";
import { Fields } from "./Fields";
import { setDraft, useDraft } from "./draftStore";
import { BLANK, type Draft, type Field, LABELS, NEW, bodyOf, errors, shown } from "./form";
import { keepHook } from "./queries";

/** A hook that is not stored yet. */
export function NewHook({ places }: { places: HookList }) {
  const [, navigate] = useLocation();
  const draft = useDraft(NEW);
  const form = shown(BLANK, draft);
  const create = useMutation({
    mutationFn: (_: { sent: Draft }) => api.post<HookView>("/api/hooks", bodyOf(form)),
    onSuccess: (hook) => {
      setDraft(NEW, () => ({}));
      keepHook(hook);
      navigate(`/settings/hooks/${hook.id}`, { replace: true });
      say(`“${hook.name}” is added. The next run uses it.`);
    },
  });
  // A refusal is about what was sent, not about what is typed now.
  const refusal = create.error instanceof ApiError && create.variables?.sent === draft ? create.error : null;
  const refused = refusal?.field ? { [refusal.field]: refusal.message } : {};
  const open = errors(form);
  // What was not touched yet is missing, not wrong.
  const wrong = Object.fromEntries(Object.entries(open).filter(([field]) => draft[field as Field] !== undefined));
  const missing = Object.keys(open).filter((field) => !(field in wrong)) as Field[];
  const canCreate = Object.keys(open).length === 0 && !create.isPending;
  const submit = () => canCreate && create.mutate({ sent: draft });
  useCommands([{ id: "create hook", title: "Create the hook", group: "Do", keys: "mod+enter", run: submit }]);
  return (
    <>
      <div className="scroll">
        <div className="settings-page">
          <Fields form={{ id: NEW, stored: BLANK, draft, wrong: { ...refused, ...wrong }, isNew: true }} hasSecret={false} places={places} />
        </div>
      </div>
      <footer className="save-bar">
        <Icon name="pen" />
        <span className="grow" role="status">
          {missing.length > 0 ? (
            <span className="dim">Missing: {missing.map((field) => LABELS[field].toLowerCase()).join(", ")}</span>
          ) : create.error ? (
            <span className="is-fail">{sentence(create.error)}</span>
          ) : (
            "A new hook"
          )}
        </span>
        <button
          type="button"
          className="btn plain"
          onClick={() => {
            setDraft(NEW, () => ({}));
            navigate("/settings/hooks");
          }}
        >
          Discard
        </button>
        <button type="button" className="btn primary" disabled={!canCreate} onClick={submit}>
          {create.isPending ? "Creating…" : "Create"}
        </button>
      </footer>
    </>
  );
}
