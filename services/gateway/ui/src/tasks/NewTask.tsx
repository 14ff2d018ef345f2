import { useMutation } from "@tanstack/react-query";
import { useId, useRef } from "react";
import { Link, useLocation } from "wouter";
import { sentence } from "../api/client";
import { useCommands } from "../app/commands";
import { FieldRow } from "../editing/FieldRow";
import { Icon } from "../ui/Icon";
import { PHONE, useMedia } from "../ui/media";
import { useTitle } from "../ui/useTitle";
import { setDraft, useDraft } from "./draftStore";
import { BLANK, type Field, NEW, bodyOf, errors, put, refusedBy, shown } from "./form";
import { AgentPicker, ModelPicker, WorkspacePicker } from "./pickers";
import { giveTask } from "./queries";

/** Work that is to be done when nobody watches. */
export function NewTask() {
  const [, navigate] = useLocation();
  const isPhone = useMedia(PHONE);
  const draft = useDraft(NEW);
  const form = shown(BLANK, draft);
  // One key for one task: what is sent again because no answer came is not done twice.
  const key = useRef(crypto.randomUUID());
  const give = useMutation({
    mutationFn: (_: { sent: typeof draft }) => giveTask(bodyOf(form), key.current),
    onSuccess: (task) => {
      setDraft(NEW, () => ({}));
      navigate(`/tasks/${task.id}`, { replace: true });
    },
  });
  // A refusal is about what was sent, not about what is typed now.
  const refusal = give.variables?.sent === draft ? give.error : null;
  const refused = refusedBy(refusal);
  const open = errors(form);
  const wrong = { ...refused, ...Object.fromEntries(Object.entries(open).filter(([field]) => draft[field as Field] !== undefined)) };
  const canGive = Object.keys(open).length === 0 && !give.isPending;
  const change = (field: Field, value: string) => {
    key.current = crypto.randomUUID();
    setDraft(NEW, (before) => put(before, field, value, BLANK));
  };
  const submit = () => canGive && give.mutate({ sent: draft });
  useCommands([{ id: "give task", title: "Give the task", group: "Do", keys: "mod+enter", run: submit }]);
  useTitle("New task");
  const promptId = useId();
  return (
    <main className="main tasks settings">
      <header className="bar">
        <Link href="/tasks" className="btn plain square" aria-label="All tasks">
          <Icon name="left" />
        </Link>
        <h1>New task</h1>
      </header>
      <div className="scroll">
        <form className="settings-page work-form" onSubmit={(event) => event.preventDefault()}>
          <FieldRow label="What is to be done" labelFor={promptId} error={wrong.prompt} isChanged={false} hint="It knows what is written here and what lies in the workspace; nobody is asked meanwhile. Its first line is its title.">
            <textarea
              id={promptId}
              className="input grows task-prompt"
              rows={7}
              dir="auto"
              value={form.prompt}
              autoFocus={!isPhone}
              aria-invalid={wrong.prompt !== undefined}
              aria-describedby={`${promptId}-hint ${promptId}-error`}
              onChange={(event) => change("prompt", event.target.value)}
            />
          </FieldRow>
          <Choices form={form} wrong={wrong} change={change} />
        </form>
      </div>
      <footer className="save-bar">
        <Icon name="tasks" />
        <span className="grow" role="status">
          {refusal && Object.keys(refused).length === 0 ? (
            <span className="is-fail">{sentence(refusal)}</span>
          ) : (
            <span className="dim">{canGive ? "It begins when a place is free, and goes on when you leave." : open.prompt && !draft.prompt ? "Say what is to be done." : ""}</span>
          )}
        </span>
        <button
          type="button"
          className="btn plain"
          onClick={() => {
            setDraft(NEW, () => ({}));
            navigate("/tasks");
          }}
        >
          Discard
        </button>
        <button type="button" className="btn primary" disabled={!canGive} onClick={submit}>
          {give.isPending ? "Giving…" : "Give task"}
        </button>
      </footer>
    </main>
  );
}

function Choices({
  form,
  wrong,
  change,
}: {
  form: typeof BLANK;
  wrong: Partial<Record<Field, string>>;
  change: (field: Field, value: string) => void;
}) {
  const id = useId();
  const picker = (field: "workspaceId" | "agentId" | "model") => ({
    id: `${id}-${field}`,
    value: form[field],
    isInvalid: wrong[field] !== undefined,
    onChange: (value: string) => change(field, value),
  });
  const row = (field: Field, label: string) => ({ label, labelFor: `${id}-${field}`, error: wrong[field], isChanged: false });
  const number = (field: "priority" | "maxAttempts") => (
    <span className="measured">
      <input
        id={`${id}-${field}`}
        className="input"
        inputMode="numeric"
        autoComplete="off"
        value={form[field]}
        aria-invalid={wrong[field] !== undefined}
        aria-describedby={`${id}-${field}-hint ${id}-${field}-error`}
        onChange={(event) => change(field, event.target.value)}
      />
    </span>
  );
  return (
    <>
      <div className="two">
        <FieldRow {...row("workspaceId", "Workspace")} hint="The folder that it works in.">
          <WorkspacePicker {...picker("workspaceId")} />
        </FieldRow>
        <FieldRow {...row("agentId", "Agent")} hint="The orchestrator may ask the others.">
          <AgentPicker {...picker("agentId")} />
        </FieldRow>
      </div>
      <FieldRow {...row("model", "Model")} hint="The default is the one that is set when an attempt begins.">
        <ModelPicker {...picker("model")} />
      </FieldRow>
      <div className="two">
        <FieldRow {...row("priority", "Priority")} beside="−10 to 10" hint="The highest goes first.">
          {number("priority")}
        </FieldRow>
        <FieldRow {...row("maxAttempts", "Attempts")} beside="1 to 10" hint="What it may take, when it fails in a way that passes.">
          {number("maxAttempts")}
        </FieldRow>
      </div>
    </>
  );
}
