import { useMutation } from "@tanstack/react-query";
import { useLocation } from "wouter";
import { ApiError, api, sentence } from "../api/client";
import { useCommands } from "../app/commands";
import type { AgentView, SkillView } from "../contracts";
import { Icon } from "../ui/Icon";
import { say } from "../ui/toasts";
import { SkillFields } from "./SkillForm";
import { draftOf, setDraft, useDraft } from "./draftStore";
import { BLANK, type Draft, type Field, LABELS, NEW, bodyOf, errors, shown } from "./form";
import { keepSkill } from "./queries";
import { refusedBy } from "./refused";

/** A skill that is not stored yet. */
export function NewSkill({ agent }: { agent: AgentView }) {
  const [, navigate] = useLocation();
  const id = draftOf(agent.id, NEW);
  const draft = useDraft(id);
  const form = shown(BLANK, draft);
  const list = `/agents/${agent.id}/skills`;
  const create = useMutation({
    mutationFn: (_: { sent: Draft }) => api.post<SkillView>(`/api/agents/${agent.id}/skills`, bodyOf(form)),
    onSuccess: (skill) => {
      setDraft(id, () => ({}));
      keepSkill(skill);
      navigate(`${list}/${skill.id}`, { replace: true });
      say(`“${skill.name}” is added. The next run of ${agent.name} has it.`);
    },
    onError: (error) => {
      // Somebody made it meanwhile: the list shows it.
      if (error instanceof ApiError && error.body["skill"]) keepSkill(error.body["skill"] as SkillView);
    },
  });
  // A refusal is about what was sent, not about what is typed now.
  const refused = create.variables?.sent === draft ? refusedBy(create.error) : {};
  const open = errors(form);
  // What was not touched yet is missing, not wrong.
  const wrong = Object.fromEntries(Object.entries(open).filter(([field]) => draft[field as Field] !== undefined));
  const missing = Object.keys(open).filter((field) => !(field in wrong)) as Field[];
  const canCreate = Object.keys(open).length === 0 && !create.isPending;
  const submit = () => canCreate && create.mutate({ sent: draft });
  useCommands([{ id: "create skill", title: "Create the skill", group: "Do", keys: "mod+enter", run: submit }]);
  return (
    <>
      <div className="scroll">
        <div className="settings-page">
          <SkillFields form={{ id, stored: BLANK, draft, wrong: { ...refused, ...wrong }, isNew: true }} />
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
            "A new skill"
          )}
        </span>
        <button
          type="button"
          className="btn plain"
          onClick={() => {
            setDraft(id, () => ({}));
            navigate(list);
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
