import { type AgentRuntimeView, agentRuntimeFields } from "../contracts";

export type Field = keyof typeof agentRuntimeFields;
export const FIELDS = Object.keys(agentRuntimeFields) as Field[];
export type Value = AgentRuntimeView[Field];

/** What a person calls a setting, and its unit; bounds and default come with the contract, and its meaning too unless that speaks of values. */
export const LABELS: Record<Field, { label: string; unit?: string; long?: boolean; meaning?: string }> = {
  modelSource: { label: "Where answers come from", meaning: "Auto: the connected server, else the embedded model." },
  defaultModel: { label: "Default model" },
  supervisorMaxSteps: { label: "Steps a turn", unit: "steps" },
  concurrentToolCalls: { label: "Tool calls at the same time", unit: "calls" },
  finalResponseFeedback: { label: "Word before the last step", long: true },
  specialistMaxSteps: { label: "Steps of a specialist", unit: "steps" },
  processorRetries: { label: "Answers sent back by a hook", unit: "times" },
  delegationContextMessages: { label: "Messages that a specialist is given", unit: "messages" },
  delegationResultCharacters: { label: "Longest result of a specialist", unit: "characters" },
  delegationFailureText: { label: "When a specialist failed", long: true },
  delegationTruncationText: { label: "Where a result was cut", long: true },
  backgroundConcurrency: { label: "Background tasks at the same time", unit: "tasks" },
  backgroundPollMs: { label: "Looking for tasks that are due", unit: "ms" },
  taskTimeoutMs: { label: "Longest task", unit: "ms" },
};

export const CHOICES: Record<string, string> = {
  auto: "Auto",
  router: "Connected server only",
  local: "Embedded model only",
};

export interface Group {
  title: string;
  note: string;
  fields: readonly Field[];
}

export const MODEL_FIELDS: readonly Field[] = ["modelSource", "defaultModel"];
const TURN_FIELDS: readonly Field[] = ["supervisorMaxSteps", "concurrentToolCalls", "processorRetries", "finalResponseFeedback"];
const SPECIALIST_FIELDS: readonly Field[] = [
  "specialistMaxSteps",
  "delegationContextMessages",
  "delegationResultCharacters",
  "delegationFailureText",
  "delegationTruncationText",
];
const TASK_FIELDS: readonly Field[] = ["backgroundConcurrency", "taskTimeoutMs", "backgroundPollMs"];
const READ_FIELDS: readonly Field[] = [...MODEL_FIELDS, ...TURN_FIELDS, ...SPECIALIST_FIELDS, ...TASK_FIELDS];

/** Every setting of the contract has its place; one that is new and has no group yet stands among those that are not used. */
const ALL_GROUPS: readonly Group[] = [
  { title: "Model", note: "", fields: MODEL_FIELDS },
  { title: "A turn", note: "", fields: TURN_FIELDS },
  { title: "Specialists", note: "", fields: SPECIALIST_FIELDS },
  { title: "Tasks", note: "", fields: TASK_FIELDS },
  {
    title: "Not used today",
    note: "Nothing reads this yet. What you save is kept.",
    fields: FIELDS.filter((field) => !READ_FIELDS.includes(field)),
  },
];
export const GROUPS = ALL_GROUPS.filter(({ fields }) => fields.length > 0);
