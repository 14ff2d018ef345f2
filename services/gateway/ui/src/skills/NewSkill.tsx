import { useLocation } from "wouter";
import { ApiError, api } from "../api/client";
import type { AgentView, SkillView } from "../contracts";
import { CreateBar } from "../editing/CreateBar";
import { useCreating } from "../editing/useCreating";
import { say } from "../ui/toasts";
import { SkillFields } from "./SkillForm";
import { draftOf, setDraft, useDraft } from "./draftStore";
import { BLANK, FIELDS, LABELS, NEW, bodyOf, errors, shown } from "./form";
import { keepSkill } from "./queries";
import { refusedBy } from "./refused";

/** A skill that is not stored yet. */
export function NewSkill({ agent }: { agent: AgentView }) {
  const [, navigate] = useLocation();
  const id = draftOf(agent.id, NEW);
  const draft = useDraft(id);
  const form = shown(BLANK, draft);
  const list = `/agents/${agent.id}/skills`;
  const creating = useCreating({
    draft,
    fields: FIELDS,
    problems: errors(form),
    send: () => create(agent.id, bodyOf(form)),
    refused: refusedBy,
    onCreated: (skill) => {
      setDraft(id, () => ({}));
      keepSkill(skill);
      navigate(`${list}/${skill.id}`, { replace: true });
      say(`“${skill.name}” is added. The next run of ${agent.name} has it.`);
    },
  });
  return (
    <>
      <div className="scroll">
        <div className="settings-page">
          <SkillFields form={{ id, stored: BLANK, draft, wrong: creating.wrong, isNew: true }} />
        </div>
      </div>
      <CreateBar
        creating={creating}
        labels={LABELS}
        command="Create the skill"
        action="Create"
        busy="Creating…"
        onDiscard={() => {
          setDraft(id, () => ({}));
          navigate(list);
        }}
      >
        A new skill
      </CreateBar>
    </>
  );
}

async function create(agentId: string, body: ReturnType<typeof bodyOf>): Promise<SkillView> {
  try {
    return await api.post<SkillView>(`/api/agents/${agentId}/skills`, body);
  } catch (error) {
    // Somebody made it meanwhile: the list shows it.
    if (error instanceof ApiError && error.body["skill"]) keepSkill(error.body["skill"] as SkillView);
    throw error;
  }
}
