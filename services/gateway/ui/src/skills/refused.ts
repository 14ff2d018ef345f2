import { ApiError } from "../api/client";
import type { Field } from "./form";

/** What the server did not accept, by field; a field of the contract may name a place within it. */
export function refusedBy(error: Error | null): Partial<Record<Field, string>> {
  if (!(error instanceof ApiError)) return {};
  const field = error.code === "skill_exists" ? "name" : /^[a-zA-Z]+/.exec(error.field ?? "")?.[0];
  return field ? { [field as Field]: error.message } : {};
}
