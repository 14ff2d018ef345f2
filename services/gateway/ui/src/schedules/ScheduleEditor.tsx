import { useState } from "react";
import { useLocation } from "wouter";
import type { ScheduleView } from "../contracts";
import { SaveBar } from "../editing/SaveBar";
import { Switch } from "../editing/Switch";
import { deleteSoon } from "../editing/deleteSoon";
import { refusedBy } from "../editing/refused";
import { useSaving } from "../editing/useSaving";
import { Icon } from "../ui/Icon";
import { attempt } from "../ui/attempt";
import { say } from "../ui/toasts";
import { visible } from "../ui/visible";
import { exactly } from "../ui/words";
import { Fields } from "./Fields";
import { History } from "./History";
import { turn } from "./List";
import { usePreview } from "./Preview";
import { setDraft, useDraft } from "./draftStore";
import { type Draft, FIELDS, afterSave, changes, conflicts, errors, formOf, patchOf, shown } from "./form";
import { dropSchedule, keepSchedule, leaving, loadSchedules, runNow } from "./queries";

/** A stored schedule: as a form, or told, where it is the system's; and what came of its times. */
export function ScheduleEditor({ schedule }: { schedule: ScheduleView }) {
  if (schedule.source !== "user") return <OfTheSystem schedule={schedule} />;
  return <OfAPerson schedule={schedule} />;
}

function OfAPerson({ schedule }: { schedule: ScheduleView }) {
  const [, navigate] = useLocation();
  const draft = useDraft(schedule.id);
  const stored = formOf(schedule);
  const form = shown(stored, draft);
  const rule = usePreview(form.cron);
  const saving = useSaving<ScheduleView, Draft>({
    path: `/api/schedules/${schedule.id}`,
    name: "schedule",
    draft,
    patch: () => patchOf(draft, schedule),
    keep: keepSchedule,
    onSaved: (saved, sent) => setDraft(schedule.id, (now) => afterSave(now, sent, formOf(saved))),
    onGone: loadSchedules,
    told: "Saved.",
  });
  const changed = changes(draft, stored).length;
  const wrong = { ...errors(form), ...(rule.refusal && { cron: rule.refusal }) };
  const drop = () => {
    const back = () => {
      leaving.delete(schedule.id);
      loadSchedules();
    };
    leaving.add(schedule.id);
    setDraft(schedule.id, () => ({}));
    dropSchedule(schedule.id);
    navigate("/schedules", { replace: true });
    deleteSoon({ path: `/api/schedules/${schedule.id}`, name: schedule.name, back, gone: () => {} });
  };
  return (
    <>
      <div className="scroll">
        <div className="settings-page work-form">
          <RunNow schedule={schedule} isChanged={changed > 0} />
          <Fields form={{ id: schedule.id, stored, draft, wrong: { ...refusedBy(saving.refusal, FIELDS), ...wrong }, isNew: false }} rule={rule} />
          <History schedule={schedule} />
          <section className="settings-group">
            <div className="line wrap">
              <p className="xs faint grow">
                {schedule.revision === 0 ? `Made ${exactly(schedule.createdAt)}` : `Revision ${schedule.revision}, saved ${exactly(schedule.updatedAt)}`}
              </p>
              <button type="button" className="btn danger" onClick={drop}>
                <Icon name="trash" />
                Delete
              </button>
            </div>
          </section>
        </div>
      </div>
      <SaveBar
        what="schedule"
        changed={changed}
        disputed={conflicts(draft, stored).length}
        wrong={Object.keys(wrong).length}
        saving={saving}
        overtaken="Somebody saved this schedule meanwhile; that is shown now. Your changes are kept: save again."
        onDiscard={() => setDraft(schedule.id, () => ({}))}
      />
    </>
  );
}

function RunNow({ schedule, isChanged }: { schedule: ScheduleView; isChanged: boolean }) {
  const [isBusy, setBusy] = useState(false);
  const run = async () => {
    setBusy(true);
    await attempt(runNow(schedule.id).then(() => say(`“${schedule.name}” runs now.`)));
    setBusy(false);
  };
  return (
    <div className="line wrap">
      <p className="small dim grow">{isChanged ? "Run now uses what is saved, not what is typed here." : "Its times stay as they are when it is run by hand."}</p>
      <button type="button" className="btn" disabled={isBusy} onClick={() => void run()}>
        <Icon name="right" />
        {isBusy ? "Asking…" : "Run now"}
      </button>
    </div>
  );
}

function OfTheSystem({ schedule }: { schedule: ScheduleView }) {
  return (
    <div className="scroll">
      <div className="settings-page work-form">
        <div className="remark">
          <Icon name="settings" />
          <p className="grow">This schedule belongs to the system. It can be paused and resumed, and nothing else.</p>
          <Switch name={schedule.name} isOn={schedule.enabled} turn={(on) => turn(schedule, on)} />
        </div>
        <dl className="facts">
          <dt>When</dt>
          <dd>
            {schedule.cronWords} <code>{schedule.cron}</code>
          </dd>
          <dt>What</dt>
          <dd className="told">{visible(schedule.prompt)}</dd>
        </dl>
        <History schedule={schedule} />
      </div>
    </div>
  );
}
