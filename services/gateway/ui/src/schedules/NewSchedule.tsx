import { useMutation } from "@tanstack/react-query";
import { useRef } from "react";
import { useLocation } from "wouter";
import { request, sentence } from "../api/client";
import { useCommands } from "../app/commands";
import type { ScheduleView } from "../contracts";
import { Icon } from "../ui/Icon";
import { say } from "../ui/toasts";
import { Fields } from "./Fields";
import { usePreview } from "./Preview";
import { setDraft, useDraft } from "./draftStore";
import { BLANK, type Draft, type Field, LABELS, NEW, bodyOf, errors, refusedBy, shown } from "./form";
import { keepSchedule } from "./queries";

/** A schedule that is not stored yet. */
export function NewSchedule() {
  const [, navigate] = useLocation();
  const draft = useDraft(NEW);
  const form = shown(BLANK, draft);
  const rule = usePreview(form.cron);
  // One key for one draft: sent again because no answer came, it makes one schedule.
  const key = useRef<{ of: Draft; key: string } | null>(null);
  const create = useMutation({
    mutationFn: async ({ sent }: { sent: Draft }) => {
      if (key.current?.of !== sent) key.current = { of: sent, key: crypto.randomUUID() };
      const answer = await request("POST", "/api/schedules", { body: bodyOf(form), headers: { "idempotency-key": key.current.key } });
      return (await answer.json()) as ScheduleView;
    },
    onSuccess: (schedule) => {
      setDraft(NEW, () => ({}));
      keepSchedule(schedule);
      navigate(`/schedules/${schedule.id}`, { replace: true });
      say(`“${schedule.name}” is saved.`);
    },
  });
  // A refusal is about what was sent, not about what is typed now.
  const refusal = create.variables?.sent === draft ? create.error : null;
  const refused = refusedBy(refusal);
  const open = errors(form);
  // What was not touched yet is missing, not wrong.
  const wrong = Object.fromEntries(Object.entries(open).filter(([field]) => draft[field as Field] !== undefined));
  const missing = Object.keys(open).filter((field) => !(field in wrong)) as Field[];
  const canCreate = Object.keys(open).length === 0 && !rule.refusal && !create.isPending;
  const submit = () => canCreate && create.mutate({ sent: draft });
  useCommands([{ id: "create schedule", title: "Save the schedule", group: "Do", keys: "mod+enter", run: submit }]);
  return (
    <>
      <div className="scroll">
        <div className="settings-page work-form">
          <Fields
            form={{ id: NEW, stored: BLANK, draft, wrong: { ...refused, ...wrong, ...(rule.refusal && { cron: rule.refusal }) }, isNew: true }}
            rule={rule}
          />
        </div>
      </div>
      <footer className="save-bar">
        <Icon name="clock" />
        <span className="grow" role="status">
          {missing.length > 0 ? (
            <span className="dim">Missing: {missing.map((field) => LABELS[field].toLowerCase()).join(", ")}</span>
          ) : refusal && Object.keys(refused).length === 0 ? (
            <span className="is-fail">{sentence(refusal)}</span>
          ) : (
            "A new schedule"
          )}
        </span>
        <button
          type="button"
          className="btn plain"
          onClick={() => {
            setDraft(NEW, () => ({}));
            navigate("/schedules");
          }}
        >
          Discard
        </button>
        <button type="button" className="btn primary" disabled={!canCreate} onClick={submit}>
          {create.isPending ? "Saving…" : "Save"}
        </button>
      </footer>
    </>
  );
}
