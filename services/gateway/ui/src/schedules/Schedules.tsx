import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { Link } from "wouter";
import { Loading } from "../settings/Loading";
import { Icon } from "../ui/Icon";
import { useTitle } from "../ui/useTitle";
import { visible } from "../ui/visible";
import { List } from "./List";
import { NewSchedule } from "./NewSchedule";
import { ScheduleEditor } from "./ScheduleEditor";
import { setDraft } from "./draftStore";
import { NEW } from "./form";
import { schedulesQuery } from "./queries";
import "../settings/settings.css";
import "../tasks/tasks.css";
import "./schedules.css";

/** All schedules, a new one, or the one whose id is `id`. */
export function Schedules({ id }: { id: string | null }) {
  const schedules = useQuery(schedulesQuery);
  const schedule = schedules.data?.items.find((each) => each.id === id);
  const title = id === NEW ? "New schedule" : (schedule?.name ?? "Schedules");
  useTitle(title);
  return (
    <main className="main settings">
      <header className="bar">
        {id !== null && (
          <Link href="/schedules" className="btn plain square" aria-label="All schedules">
            <Icon name="left" />
          </Link>
        )}
        <h1 className="cut">{visible(title)}</h1>
        {schedule && !schedule.enabled && <span className="chip">Paused</span>}
        {id === null && (schedules.data?.items.length ?? 0) > 0 && (
          <Link href={`/schedules/${NEW}`} className="btn primary end">
            <Icon name="plus" />
            New schedule
          </Link>
        )}
      </header>
      {schedule && schedules.data ? (
        <ScheduleEditor key={schedule.id} schedule={schedule} />
      ) : id === NEW ? (
        <NewSchedule />
      ) : (
        <div className="scroll">
          {id === null ? (
            <Loading query={schedules} what="the schedules">
              {(list) => <List list={list} />}
            </Loading>
          ) : (
            <Loading query={schedules} what="the schedule">
              {() => <Gone id={id} />}
            </Loading>
          )}
        </div>
      )}
    </main>
  );
}

function Gone({ id }: { id: string }) {
  // There is nothing that it could be saved to.
  useEffect(() => setDraft(id, () => ({})), [id]);
  return (
    <div className="empty">
      <h2>There is no such schedule</h2>
      <p>It was deleted, or the address is wrong. Its tasks stay.</p>
      <Link href="/schedules" className="btn">
        See all schedules
      </Link>
    </div>
  );
}
