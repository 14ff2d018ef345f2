import { useId } from "react";
import { Link, useLocation } from "wouter";
import { CreateBar } from "../editing/CreateBar";
import { FieldRow } from "../editing/FieldRow";
import { useCreating } from "../editing/useCreating";
import { Icon } from "../ui/Icon";
import { PHONE, useMedia } from "../ui/media";
import { useTitle } from "../ui/useTitle";
import { setDraft, useDraft } from "./draftStore";
import { BLANK, FIELDS, type Field, NEW, bodyOf, errors, put, shown } from "./form";
import { AgentPicker, ModelPicker, WorkspacePicker } from "./pickers";
import { giveTask } from "./queries";

/** Work that is to be done when nobody watches. */
export function NewTask() {
  const [, navigate] = useLocation();
  const isPhone = useMedia(PHONE);
  const draft = useDraft(NEW);
  const form = shown(BLANK, draft);
  const creating = useCreating({
    draft,
    fields: FIELDS,
    problems: errors(form),
    send: (key) => giveTask(bodyOf(form), key),
    onCreated: (task) => {
      setDraft(NEW, () => ({}));
      navigate(`/tasks/${task.id}`, { replace: true });
    },
  });
  const { wrong, canCreate, missing } = creating;
  const change = (field: Field, value: string) => setDraft(NEW, (before) => put(before, field, value, BLANK));
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
      <CreateBar
        icon="tasks"
        creating={creating}
        command="Give the task"
        action="Give task"
        busy="Giving…"
        onDiscard={() => {
          setDraft(NEW, () => ({}));
          navigate("/tasks");
        }}
      >
        <span className="dim">{canCreate ? "It begins when a place is free, and goes on when you leave." : missing.includes("prompt") ? "Say what is to be done." : ""}</span>
      </CreateBar>
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
