import type { HookTrialView } from "../contracts";

/** What an outcome means, in words. */
export function verdict({ status, decision }: Pick<HookTrialView, "status" | "decision">): { words: string; tone: "ok" | "wait" | "fail" | "" } {
  if (status === "denied") return { words: "Refused", tone: "wait" };
  if (status === "ok") return { words: decision === null ? "Was told" : "Agreed", tone: "ok" };
  if (status === "skipped") return { words: "Not asked", tone: "" };
  const what = status === "timeout" ? "Did not answer in time" : "Failed";
  if (decision === null) return { words: what, tone: "fail" };
  return { words: `${what}, ${decision === "deny" ? "so it was refused" : "and it went on"}`, tone: "fail" };
}
