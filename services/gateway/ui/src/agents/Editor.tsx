import { useMutation, useQuery } from "@tanstack/react-query";
import { type ReactNode, useId } from "react";
import { ApiError, api } from "../api/client";
import { modelsQuery } from "../app/queries";
import type { AgentFinding, AgentPatch, AgentView, ToolView } from "../contracts";
import { FieldRow } from "../editing/FieldRow";
import { SaveBar } from "../editing/SaveBar";
import { Unsaved } from "../editing/Unsaved";
import { Icon } from "../ui/Icon";
import { Segments } from "../ui/Segments";
import { say } from "../ui/toasts";
import { exactly } from "../ui/words";
import { ToolPicks } from "./ToolPicks";
import { type Draft, type Field, LONGEST, type Value, afterSave, changes, conflicts, errors, keepMine, patchOf, put, shown, without } from "./draft";
import { setDraft, useDraft } from "./draftStore";
import { ACCESS, ALLOWED, LABELS, changesOf, inWords } from "./labels";
import { ORCHESTRATOR, keepAgent } from "./queries";

interface Form {
  stored: AgentView;
  draft: Draft;
  wrong: Partial<Record<Field, string>>;
  change: (field: Field, value: Value) => void;
}

/** The whole profile of one agent as a form, beside it what saving would change. */
export function Editor({ stored, tools, findings }: { stored: AgentView; tools: ToolView[]; findings: AgentFinding[] }) {
  const draft = useDraft(stored.id);
  const saving = useSave(stored, draft);
  const form: Form = {
    stored,
    draft,
    wrong: { ...saving.refused, ...errors(draft) },
    change: (field, value) => setDraft(stored.id, (before) => put(before, field, value, stored)),
  };
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
            <TextField form={form} field="name" value={agent.name} />
            <TextField form={form} field="delegationDescription" value={agent.delegationDescription} rows={3} hint="Read by the orchestrator." />
            <TextField form={form} field="instructions" value={agent.instructions} rows={14} hint="The whole of its guidance, in the prompt of every run." />
            <div className="two">
              <Choice form={form} field="workspaceAccess" value={agent.workspaceAccess} choices={ACCESS} />
              <Choice form={form} field="browserAccess" value={agent.browserAccess} choices={ALLOWED} />
            </div>
            {stored.id !== ORCHESTRATOR && <Choice form={form} field="delegable" value={agent.delegable} choices={ALLOWED} />}
            <Row form={form} field="tools" labelId={toolsId} beside={`${agent.tools.length} of ${tools.length}`} hint="In order of importance: a small model is offered the first ones.">
              <ToolPicks chosen={agent.tools} tools={tools} labelledBy={toolsId} onChange={(names) => form.change("tools", names)} />
            </Row>
            <ModelField form={form} value={agent.modelOverride} />
            <TextField form={form} field="sourceUrl" value={agent.sourceUrl} hint="An address, for those who read the profile." />
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

/** One field of the profile, as far as it is not its control. */
function Row({
  form: { stored, draft, wrong },
  field,
  children,
  ...rest
}: {
  form: Form;
  field: Field;
  labelFor?: string;
  labelId?: string;
  beside?: string;
  hint?: string | undefined;
  children: ReactNode;
}) {
  return (
    <FieldRow
      label={LABELS[field]}
      error={wrong[field]}
      isChanged={changes(draft, stored).includes(field)}
      dispute={
        conflicts(draft, stored).includes(field)
          ? {
              stored: inWords(field, stored[field]),
              mine: inWords(field, draft[field]?.value ?? null),
              onKeepMine: () => setDraft(stored.id, (before) => keepMine(before, field, stored)),
              onTakeStored: () => setDraft(stored.id, (before) => without(before, [field])),
            }
          : null
      }
      {...rest}
    >
      {children}
    </FieldRow>
  );
}

function TextField({
  form,
  field,
  value,
  rows,
  hint,
}: {
  form: Form;
  field: "name" | "delegationDescription" | "instructions" | "sourceUrl";
  value: string | null;
  rows?: number;
  hint?: string;
}) {
  const id = useId();
  const text = value ?? "";
  const control = {
    id,
    className: "input",
    value: text,
    "aria-invalid": form.wrong[field] !== undefined,
    "aria-describedby": `${id}-hint ${id}-error`,
    onChange: (event: { target: { value: string } }) => form.change(field, event.target.value === "" && field === "sourceUrl" ? null : event.target.value),
  };
  return (
    <Row form={form} field={field} labelFor={id} hint={hint} beside={rows ? `${[...text].length.toLocaleString()} of ${LONGEST[field]?.toLocaleString()} characters` : ""}>
      {rows ? <textarea rows={rows} {...control} /> : <input autoComplete="off" {...control} />}
    </Row>
  );
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
        onChange={(choice) => form.change(field, typeof value === "boolean" ? choice === "true" : (choice as Value))}
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
        onChange={(event) => form.change("modelOverride", event.target.value.trim() || null)}
      />
      <datalist id={`${id}-models`}>
        {data?.models.map((model) => (
          <option key={model} value={model} />
        ))}
      </datalist>
    </Row>
  );
}

/** Saving of one profile: `refused` says by field what the server did not accept. */
function useSave(stored: AgentView, draft: Draft) {
  const save = useMutation({
    mutationFn: ({ patch }: { patch: AgentPatch; sent: Draft }) => api.patch<AgentView>(`/api/agents/${stored.id}`, patch),
    onSuccess: (agent, { sent }) => {
      keepAgent(agent);
      setDraft(stored.id, (now) => afterSave(now, sent, agent));
      say("Saved. The next run uses it.");
    },
    onError: (error) => {
      if (error instanceof ApiError && error.status === 409 && error.body["agent"]) keepAgent(error.body["agent"] as AgentView);
    },
  });
  // A refusal is about what was sent, not about what is typed now.
  const refusal = save.error instanceof ApiError && save.variables?.sent === draft ? save.error : null;
  const field = refusal?.field?.split(".")[0];
  const refused: Partial<Record<Field, string>> = refusal && field ? { [field as Field]: refusal.message } : {};
  return {
    save: () => save.mutate({ patch: patchOf(draft, stored), sent: draft }),
    reset: () => save.reset(),
    busy: save.isPending,
    error: save.error,
    refused,
  };
}
