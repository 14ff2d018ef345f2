import { ApiError } from "../api/client";

/** What the server did not accept, by field: a field of the contract may name a place within or around that of the form. */
export function refusedBy<Field extends string>(error: Error | null, fields: readonly Field[]): Partial<Record<Field, string>> {
  const places = error instanceof ApiError ? (error.field ?? "").split(/[^a-zA-Z]+/) : [];
  const field = places.find((place) => fields.includes(place as Field)) as Field | undefined;
  return field && error ? ({ [field]: error.message } as Partial<Record<Field, string>>) : {};
}
