import { useLocation } from "wouter";
import type { AgentFinding, SkillView } from "../contracts";
import { SaveBar } from "../editing/SaveBar";
import { Unsaved } from "../editing/Unsaved";
import { deleteSoon } from "../editing/deleteSoon";
import { useSaving } from "../editing/useSaving";
import { Icon } from "../ui/Icon";
import { exactly } from "../ui/words";
import { SkillFields } from "./SkillForm";
import { draftOf, setDraft, useDraft } from "./draftStore";
import { exportSkills } from "./exporting";
import { type Draft, afterSave, changes, changesOf, conflicts, errors, formOf, patchOf, shown } from "./form";
import { dropSkill, keepSkill, leaving, loadAgain, pathOf } from "./queries";
import { refusedBy } from "./refused";

/** A stored skill as a form, beside it what saving would change. */
export function SkillEditor({ skill, findings }: { skill: SkillView; findings: AgentFinding[] }) {
  const [, navigate] = useLocation();
  const id = draftOf(skill.agentId, skill.id);
  const draft = useDraft(id);
  const stored = formOf(skill);
  const form = shown(stored, draft);
  const saving = useSaving<SkillView, Draft>({
    path: pathOf(skill),
    name: "skill",
    draft,
    patch: () => patchOf(draft, skill),
    keep: keepSkill,
    onSaved: (saved, sent) => setDraft(id, (now) => afterSave(now, sent, formOf(saved))),
    onGone: () => loadAgain(skill.agentId),
    told: "Saved. The next run has it.",
  });
  const wrong = errors(form);
  const drop = () => {
    const back = () => {
      leaving.delete(skill.id);
      loadAgain(skill.agentId);
    };
    leaving.add(skill.id);
    setDraft(id, () => ({}));
    dropSkill(skill);
    navigate(`/agents/${skill.agentId}/skills`, { replace: true });
    deleteSoon({ path: pathOf(skill), name: skill.name, back, gone: () => {} });
  };
  return (
    <>
      <div className="scroll">
        <div className="settings-page agent-page">
          <div className="agent-form">
            {skill.evolutionManaged && (
              <div className="remark">
                <Icon name="thought" />
                <p className="grow">It was learned, and may be changed by what is learned later. With your first edit it is yours.</p>
              </div>
            )}
            {findings.map((finding) => (
              <div key={finding.message} className={`remark ${finding.severity === "fault" ? "fail" : ""}`}>
                <Icon name="alert" />
                <div className="grow">
                  <p>{finding.message}</p>
                  <p className="dim">{finding.fix}</p>
                </div>
              </div>
            ))}
            <SkillFields form={{ id, stored, draft, wrong: { ...refusedBy(saving.refusal), ...wrong }, isNew: false }} />
            <div className="line wrap">
              <p className="xs faint grow">{skill.revision === 0 ? `Made ${exactly(skill.createdAt)}` : `Revision ${skill.revision}, saved ${exactly(skill.updatedAt)}`}</p>
              <button type="button" className="btn" onClick={() => void exportSkills([skill], skill.name)}>
                <Icon name="download" />
                Export
              </button>
              <button type="button" className="btn danger" onClick={drop}>
                <Icon name="trash" />
                Delete
              </button>
            </div>
          </div>
          <Unsaved changes={changesOf(stored, form)} note="Applies to the next run. Runs in progress keep what they began with." />
        </div>
      </div>
      <SaveBar
        what="skill"
        changed={changes(draft, stored).length}
        disputed={conflicts(draft, stored).length}
        wrong={Object.keys(wrong).length}
        saving={saving}
        overtaken="Somebody saved this skill meanwhile; that is shown now. Your changes are kept: save again."
        onDiscard={() => setDraft(id, () => ({}))}
      />
    </>
  );
}
