import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { Link, useLocation } from "wouter";
import { useCommands } from "../app/commands";
import { workspacesQuery } from "../app/queries";
import type { ScheduleList, ScheduleRunView, ScheduleView } from "../contracts";
import { Switch } from "../editing/Switch";
import { insist } from "../editing/revisions";
import { useMove } from "../tasks/useMove";
import { Icon } from "../ui/Icon";
import { useNow } from "../ui/useNow";
import { visible } from "../ui/visible";
import { exactly, when } from "../ui/words";
import { setDraft, useDrafts } from "./draftStore";
import { BLANK, NEW, putAll } from "./form";
import { keepSchedule } from "./queries";
import { away, local, otherZone, outcomeOf } from "./times";

const EXAMPLE = {
  name: "Morning look",
  cron: "30 8 * * MON-FRI",
  prompt: "Read what changed in this workspace since yesterday and write a short summary: what was done, and what looks unfinished.",
};
const TICK_MS = 15_000;

/** Every schedule by name, with what comes next and what came of the last time. */
export function List({ list }: { list: ScheduleList }) {
  const [, navigate] = useLocation();
  const isBegun = useDrafts()[NEW] !== undefined;
  const rows = useRef<HTMLDivElement>(null);
  const now = useNow(list.items.length > 0, TICK_MS);
  useMove(rows);
  useCommands([{ id: "new schedule", title: "New schedule", group: "Do", keys: "n", run: () => navigate(`/schedules/${NEW}`) }]);
  if (list.items.length === 0) return <Explained />;
  const zone = otherZone(list.timezone);
  return (
    <div ref={rows}>
      <p className="small dim schedule-zone">
        Rules are read in the server's time zone, {list.timezone}.{zone ? ` Times are shown in yours, ${zone}.` : ""}
      </p>
      {isBegun && (
        <p className="task-note small is-wait">
          A new one was begun and is <b>not saved</b>.{" "}
          <Link href={`/schedules/${NEW}`} className="link">
            Go on with it
          </Link>
        </p>
      )}
      <div className="schedule head" aria-hidden="true">
        <span className="schedule-link">
          <span>What</span>
          <span>Next</span>
          <span>Last</span>
        </span>
        <span className="check" />
      </div>
      <ul aria-label="Schedules">
        {list.items.map((schedule) => (
          <Row key={schedule.id} schedule={schedule} now={now} />
        ))}
      </ul>
    </div>
  );
}

function Row({ schedule, now }: { schedule: ScheduleView; now: number }) {
  const isUnsaved = useDrafts()[schedule.id] !== undefined;
  const workspace = useQuery(workspacesQuery).data?.items.find(({ id }) => id === schedule.workspaceId)?.name;
  const { nextRunAt, lastRun } = schedule;
  return (
    <li className={`schedule ${schedule.enabled ? "" : "off"}`}>
      <Link href={`/schedules/${schedule.id}`} className="schedule-link" data-row>
        <span className="task-what">
          <span className="line">
            <span className="cut task-title">{visible(schedule.name)}</span>
            {schedule.source !== "user" && <span className="chip">system</span>}
            {isUnsaved && <b className="xs is-wait nowrap">not saved</b>}
          </span>
          <span className="cut task-line">
            {schedule.cronWords}
            {workspace && ` · ${visible(workspace)}`}
          </span>
        </span>
        <span className="schedule-next">
          {nextRunAt ? (
            <>
              <time dateTime={nextRunAt}>{local(nextRunAt, now)}</time>
              <span className="xs faint">{away(nextRunAt, now)}</span>
            </>
          ) : (
            <span className="faint">Paused</span>
          )}
        </span>
        <span className="schedule-last small">{lastRun ? <Last run={lastRun} /> : <span className="faint">Did not run yet</span>}</span>
      </Link>
      <Switch name={schedule.name} isOn={schedule.enabled} turn={(on) => turn(schedule, on)} />
    </li>
  );
}

function Last({ run }: { run: ScheduleRunView }) {
  const { word, tone } = outcomeOf(run);
  return (
    <span title={exactly(run.plannedAt)}>
      <span className={tone ? `is-${tone}` : "dim"}>{word}</span> <span className="faint">{when(run.plannedAt)}</span>
    </span>
  );
}

export async function turn(schedule: ScheduleView, enabled: boolean): Promise<void> {
  keepSchedule(await insist<ScheduleView>(`/api/schedules/${schedule.id}`, "schedule", schedule.revision, { enabled }));
}

function Explained() {
  const [, navigate] = useLocation();
  const begin = () => {
    setDraft(NEW, (before) => putAll(before, EXAMPLE, BLANK));
    navigate(`/schedules/${NEW}`);
  };
  return (
    <div className="empty task-explained">
      <h2>No schedules yet</h2>
      <p>A schedule gives the same task again and again, at times that a rule names. Each time is kept with what came of it.</p>
      <div className="card">
        <div className="body">
          <p className="xs faint">
            For example <code>{EXAMPLE.cron}</code>: half past eight on working days
          </p>
          <p>{EXAMPLE.prompt}</p>
          <div className="line wrap">
            <button type="button" className="btn primary" onClick={begin}>
              <Icon name="pen" />
              Begin with this one
            </button>
            <Link href={`/schedules/${NEW}`} className="btn">
              New schedule
            </Link>
          </div>
        </div>
      </div>
    </div>
  );
}
