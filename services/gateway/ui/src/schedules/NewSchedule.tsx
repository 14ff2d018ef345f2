import { useLocation } from "wouter";
import { request } from "../api/client";
import type { ScheduleView } from "../contracts";
import { CreateBar } from "../editing/CreateBar";
import { useCreating } from "../editing/useCreating";
import { say } from "../ui/toasts";
import { Fields } from "./Fields";
import { usePreview } from "./Preview";
import { setDraft, useDraft } from "./draftStore";
import { BLANK, FIELDS, LABELS, NEW, bodyOf, errors, shown } from "./form";
import { keepSchedule } from "./queries";

/** A schedule that is not stored yet. */
export function NewSchedule() {
  const [, navigate] = useLocation();
  const draft = useDraft(NEW);
  const form = shown(BLANK, draft);
  const rule = usePreview(form.cron);
  const creating = useCreating({
    draft,
    fields: FIELDS,
    problems: { ...errors(form), ...(rule.refusal && { cron: rule.refusal }) },
    send: async (key) => {
      const answer = await request("POST", "/api/schedules", { body: bodyOf(form), headers: { "idempotency-key": key } });
      return (await answer.json()) as ScheduleView;
    },
    onCreated: (schedule) => {
      setDraft(NEW, () => ({}));
      keepSchedule(schedule);
      navigate(`/schedules/${schedule.id}`, { replace: true });
      say(`“${schedule.name}” is saved.`);
    },
  });
  return (
    <>
      <div className="scroll">
        <div className="settings-page work-form">
          <Fields form={{ id: NEW, stored: BLANK, draft, wrong: creating.wrong, isNew: true }} rule={rule} />
        </div>
      </div>
      <CreateBar
        icon="clock"
        creating={creating}
        labels={LABELS}
        command="Save the schedule"
        action="Save"
        busy="Saving…"
        onDiscard={() => {
          setDraft(NEW, () => ({}));
          navigate("/schedules");
        }}
      >
        A new schedule
      </CreateBar>
    </>
  );
}
