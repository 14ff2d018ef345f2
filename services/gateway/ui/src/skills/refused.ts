import { ApiError } from "../api/client";
import * as editing from "../editing/refused";
import { FIELDS, type Field } from "./form";

/** What the server did not accept, by field; a skill that exists already has its name. */
export function refusedBy(error: Error | null): Partial<Record<Field, string>> {
  if (error instanceof ApiError && error.code === "skill_exists") return { name: error.message };
  return editing.refusedBy(error, FIELDS);
}
