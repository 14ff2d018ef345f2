import type { Field, Value } from "./draft";

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

export const ACCESS = { none: "None", "read-only": "Read", "read-write": "Read and write" } as const;
export const ALLOWED = { true: "Allowed", false: "Never" } as const;

/** A value as it is read in a sentence. */
export function inWords(field: Field, value: Value): string {
  if (value === null || value === "") return field === "modelOverride" ? "inherited" : "empty";
  if (Array.isArray(value)) return value.join(", ") || "none";
  if (typeof value === "boolean") return value ? ALLOWED.true : ALLOWED.false;
  return field === "workspaceAccess" ? ACCESS[value as keyof typeof ACCESS] : value;
}
