import type { ScheduleRunView } from "../contracts";
import { duration, plural } from "../ui/words";

const soon = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const far = new Intl.DateTimeFormat(undefined, { weekday: "short", day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
const DAY_MS = 86_400_000;
const NEAR_MS = 300 * DAY_MS;

/** A planned time as this browser's clock shows it; with its year when that is not plain. */
export function local(iso: string, now = Date.now()): string {
  const at = new Date(iso);
  return (Math.abs(at.getTime() - now) < NEAR_MS ? soon : far).format(at);
}

/** in 40 s, in 2 h 5 min, in 3 days; now when it is due. */
export function away(iso: string, now: number): string {
  const ms = Date.parse(iso) - now;
  if (ms <= 0) return "now";
  if (ms >= DAY_MS) return `in ${plural(Math.round(ms / DAY_MS), "day")}`;
  return `in ${duration(ms < 60_000 ? Math.ceil(ms / 1_000) * 1_000 : Math.round(ms / 60_000) * 60_000)}`;
}

/** The zone of this browser, where rules are read in another one. */
export function otherZone(ofServer: string, here = Intl.DateTimeFormat().resolvedOptions().timeZone): string | null {
  return here && here !== ofServer ? here : null;
}

const OUTCOMES: Readonly<Record<ScheduleRunView["outcome"], string>> = {
  due: "Is being given",
  started: "Given",
  skipped: "Skipped",
  missed: "Missed",
  refused: "Refused",
};

/** What came of a time, and why there is no task where there is none. */
export function outcomeOf(run: ScheduleRunView): { word: string; why: string; tone: "" | "wait" | "fail" } {
  const why = {
    skipped: "a task of an earlier time still waited or ran",
    missed: "popagent did not run then, and it was too long ago to make up for",
  }[run.outcome as string];
  return { word: OUTCOMES[run.outcome], why: run.note || (why ?? ""), tone: run.outcome === "refused" ? "fail" : run.outcome === "missed" ? "wait" : "" };
}
