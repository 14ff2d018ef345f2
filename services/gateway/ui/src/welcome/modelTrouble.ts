import { useQuery } from "@tanstack/react-query";
import { connectionQuery, healthQuery, modelsQuery } from "../app/queries";

export interface ModelTrouble {
  reason: string;
  /** What to do; null where waiting helps. */
  fix: string | null;
}

/** Why a question would get no answer now; null when one would, as far as is known. */
export function useModelTrouble(): ModelTrouble | null {
  const health = useQuery(healthQuery).data;
  const models = useQuery(modelsQuery).data;
  // Health asks again and again; the list of models is remembered for a day, also of a server that is gone.
  const problem = health?.problems.find(({ name }) => name === "model");
  const source = useQuery({ ...connectionQuery, enabled: problem !== undefined }).data?.source;
  if (health) {
    return problem ? { reason: problem.reason, fix: source === "embedded" ? null : problem.fix } : null;
  }
  return models && !models.known ? { reason: models.note || "No model answers.", fix: null } : null;
}
