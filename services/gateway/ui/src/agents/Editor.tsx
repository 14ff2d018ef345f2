import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { modelsQuery } from "../app/queries";
import type { AgentFinding, AgentView, ToolView } from "../contracts";
import { SaveBar } from "../editing/SaveBar";
import { Unsaved } from "../editing/Unsaved";
import { type Form as EditedForm, formFields } from "../editing/formFields";
import { refusedBy } from "../editing/refused";
import { useSaving } from "../editing/useSaving";
import { Icon } from "../ui/Icon";
import { Segments } from "../ui/Segments";
import { exactly } from "../ui/words";
import { ToolPicks } from "./ToolPicks";
import { type Draft, FIELDS, type Field, LONGEST, afterSave, changes, conflicts, drafts, errors, patchOf, shown } from "./draft";
import { setDraft, useDraft } from "./draftStore";
import { ACCESS, ALLOWED, LABELS, changesOf, inWords, labelOf } from "./labels";
import { ORCHESTRATOR, keepAgent } from "./queries";

type Form = EditedForm<AgentView, Field>;

const { change, Row, TextField } = formFields<AgentView, Field>({ drafting: drafts, setDraft, labels: LABELS, inWords });

/** The whole profile of one agent as a form, beside it what saving would change. */
export function Editor({ stored, tools, findings }: { stored: AgentView; tools: ToolView[]; findings: AgentFinding[] }) {
  const draft = useDraft(stored.id);
  const saving = useSaving<AgentView, Draft>({
    path: `/api/agents/${stored.id}`,
    name: "agent",
    draft,
    patch: () => patchOf(draft, stored),
    keep: keepAgent,
    onSaved: (saved, sent) => setDraft(stored.id, (now) => afterSave(now, sent, saved)),
    told: "Saved. The next run uses it.",
  });
  const form: Form = { id: stored.id, stored, draft, wrong: { ...refusedBy(saving.refusal, FIELDS), ...errors(draft) }, isNew: false };
  const agent = shown(stored, draft);
  const toolsId = useId();
  return (
    <>
      <div className="scroll">
        <div className="settings-page agent-page">
          <div className="agent-form">
            {findings.map((finding) => (
              <Finding key={`${finding.code} ${finding.message}`} finding={finding} />
            ))}
            <TextField form={form} field="name" />
            <LongField form={form} field="delegationDescription" rows={3} hint={stored.id === ORCHESTRATOR ? "Shown beside its name where one types @ in a channel." : "Read by the orchestrator."} />
            <LongField form={form} field="instructions" rows={14} hint="The whole of its guidance, in the prompt of every run." />
            <div className="two">
              <Choice form={form} field="workspaceAccess" value={agent.workspaceAccess} choices={ACCESS} />
              <Choice form={form} field="browserAccess" value={agent.browserAccess} choices={ALLOWED} />
            </div>
            {stored.id !== ORCHESTRATOR && <Choice form={form} field="delegable" value={agent.delegable} choices={ALLOWED} />}
            <Row form={form} field="tools" labelId={toolsId} beside={`${agent.tools.length} of ${tools.length}`} hint="In order of importance: a small model is offered the first ones.">
              <ToolPicks chosen={agent.tools} tools={tools} labelledBy={toolsId} onChange={(names) => change(form, "tools", names)} />
            </Row>
            <ModelField form={form} value={agent.modelOverride} />
            <TextField form={form} field="sourceUrl" isNullable hint="An address, for those who read the profile." />
            <p className="xs faint">
              {stored.revision === 0 ? "As it came with popagent" : `Revision ${stored.revision}, saved ${exactly(stored.updatedAt)}`}
            </p>
          </div>
          <Unsaved changes={changesOf(stored, draft)} note="Applies to the next run. Runs in progress keep what they began with." />
        </div>
      </div>
      <SaveBar
        what="agent"
        changed={changes(draft, stored).length}
        disputed={conflicts(draft, stored).length}
        wrong={Object.keys(errors(draft)).length}
        saving={saving}
        overtaken="Somebody saved this agent meanwhile; that is shown now. Your changes are kept: save again."
        onDiscard={() => setDraft(stored.id, () => ({}))}
      />
    </>
  );
}

function Finding({ finding }: { finding: AgentFinding }) {
  const isFault = finding.severity === "fault";
  return (
    <div className={`remark ${isFault ? "fail" : ""}`}>
      <Icon name={isFault ? "alert" : "model"} />
      <div className="grow">
        <p>{finding.message}</p>
        <p className="dim">{finding.fix}</p>
      </div>
    </div>
  );
}

/** A text that may become long: beside it stands how long it is. */
function LongField({ form, field, rows, hint }: { form: Form; field: "delegationDescription" | "instructions"; rows: number; hint: string }) {
  const length = [...shown(form.stored, form.draft)[field]].length;
  return <TextField form={form} field={field} label={labelOf(field, form.stored.id)} rows={rows} hint={hint} beside={`${length.toLocaleString()} of ${LONGEST[field]?.toLocaleString()} characters`} />;
}

function Choice({
  form,
  field,
  value,
  choices,
}: {
  form: Form;
  field: "workspaceAccess" | "browserAccess" | "delegable";
  value: string | boolean;
  choices: Readonly<Record<string, string>>;
}) {
  const id = useId();
  return (
    <Row form={form} field={field} labelId={id}>
      <Segments
        value={String(value)}
        choices={choices}
        labelledBy={id}
        onChange={(choice) => change(form, field, typeof value === "boolean" ? choice === "true" : (choice as AgentView["workspaceAccess"]))}
      />
    </Row>
  );
}

function ModelField({ form, value }: { form: Form; value: string | null }) {
  const id = useId();
  const { data } = useQuery(modelsQuery);
  return (
    <Row form={form} field="modelOverride" labelFor={id} hint="Empty: the model of the chat, else the default.">
      <input
        id={id}
        className="input"
        list={`${id}-models`}
        autoComplete="off"
        spellCheck={false}
        placeholder={data?.defaultModel ? `empty: ${data.defaultModel}` : "empty: inherited"}
        value={value ?? ""}
        aria-invalid={form.wrong.modelOverride !== undefined}
        aria-describedby={`${id}-hint ${id}-error`}
        onChange={(event) => change(form, "modelOverride", event.target.value.trim() || null)}
      />
      <datalist id={`${id}-models`}>
        {data?.models.map((model) => (
          <option key={model} value={model} />
        ))}
      </datalist>
    </Row>
  );
}
