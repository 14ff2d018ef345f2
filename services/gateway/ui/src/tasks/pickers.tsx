import { useQuery } from "@tanstack/react-query";
import { ORCHESTRATOR, agentsQuery, takesWork } from "../agents/queries";
import { modelsQuery, workspacesQuery } from "../app/queries";
import { visible } from "../ui/visible";

interface Picker {
  id: string;
  /** Empty for the default. */
  value: string;
  isInvalid: boolean;
  onChange: (value: string) => void;
}

interface Choice {
  value: string;
  label: string;
}

function Picker({ id, value, isInvalid, onChange, fallback, choices }: Picker & { fallback: string; choices: Choice[] }) {
  const isKnown = value === "" || choices.some((each) => each.value === value);
  return (
    <select
      id={id}
      className="input"
      value={value}
      aria-invalid={isInvalid}
      aria-describedby={`${id}-hint ${id}-error`}
      onChange={(event) => onChange(event.target.value)}
    >
      <option value="">{fallback}</option>
      {choices.map((each) => (
        <option key={each.value} value={each.value}>
          {visible(each.label)}
        </option>
      ))}
      {!isKnown && <option value={value}>{visible(value)}</option>}
    </select>
  );
}

export function WorkspacePicker(picker: Picker) {
  const workspaces = useQuery(workspacesQuery).data?.items ?? [];
  const first = workspaces.find((each) => each.isDefault);
  return (
    <Picker
      {...picker}
      fallback={first ? first.name : "The default workspace"}
      choices={workspaces.filter((each) => !each.isDefault).map(({ id, name }) => ({ value: id, label: name }))}
    />
  );
}

export function AgentPicker(picker: Picker) {
  const agents = useQuery(agentsQuery).data?.items ?? [];
  // One that was chosen before stays in sight, though it may not be chosen any more.
  const offered = agents.filter((agent) => agent.id !== ORCHESTRATOR && (takesWork(agent) || agent.id === picker.value));
  const choices = offered.map(({ id, name }) => ({ value: id, label: name }));
  return <Picker {...picker} fallback="Orchestrator" choices={choices} />;
}

export function ModelPicker(picker: Picker) {
  const models = useQuery(modelsQuery).data;
  const fallback = models?.defaultModel ? `The default (${models.defaultModel})` : "The default of the moment";
  return <Picker {...picker} fallback={fallback} choices={(models?.models ?? []).map((name) => ({ value: name, label: name }))} />;
}
