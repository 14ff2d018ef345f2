import type { AgentView } from "../contracts";
import type { Change } from "../editing/Unsaved";
import { type Draft, type Field, type Value, changes } from "./draft";
import { ORCHESTRATOR } from "./queries";

export const LABELS: Record<Field, string> = {
  name: "Name",
  delegationDescription: "When to delegate to it",
  instructions: "Instructions",
  sourceUrl: "Where the guidance comes from",
  workspaceAccess: "Files of the workspace",
  browserAccess: "Browser",
  delegable: "Delegation",
  tools: "Tools",
  modelOverride: "Model",
};

/** Nobody delegates to the orchestrator: what is said of it stands beside its name. */
export function labelOf(field: Field, agentId: string): string {
  return field === "delegationDescription" && agentId === ORCHESTRATOR ? "What it is for" : LABELS[field];
}

export const ACCESS = { none: "None", "read-only": "Read", "read-write": "Read and write" } as const;
export const ALLOWED = { true: "Allowed", false: "Never" } as const;

/** A value as it is read in a sentence. */
export function inWords(field: Field, value: Value): string {
  if (value === null || value === "") return field === "modelOverride" ? "inherited" : "empty";
  if (Array.isArray(value)) return value.join(", ") || "none";
  if (typeof value === "boolean") return value ? ALLOWED.true : ALLOWED.false;
  return field === "workspaceAccess" ? ACCESS[value as keyof typeof ACCESS] : value;
}

const TEXTS: readonly Field[] = ["instructions", "delegationDescription"];

/** What saving would change, in the order of the form. */
export function changesOf(stored: AgentView, draft: Draft): Change[] {
  return changes(draft, stored).map((field) => {
    const values = [stored[field], draft[field]?.value ?? null];
    const kind = TEXTS.includes(field) ? "text" : field === "tools" ? "list" : "value";
    const [before = "", after = ""] = values.map((value) =>
      kind === "text" ? String(value) : Array.isArray(value) ? value.join("\n") : inWords(field, value),
    );
    return { key: field, label: labelOf(field, stored.id), kind, before, after };
  });
}
