import { type ReactNode, useState } from "react";
import { useLocation } from "wouter";
import { api } from "../api/client";
import { client, workspacesQuery } from "../app/queries";
import type { TaskSummary } from "../contracts";
import { Confirm } from "../ui/Dialog";
import { attempt } from "../ui/attempt";
import { say } from "../ui/toasts";
import { ConfirmCancel } from "./ConfirmCancel";
import { Resolve } from "./Resolve";
import { setDraft } from "./draftStore";
import { BLANK, NEW, putAll } from "./form";
import { dropTask } from "./lists";
import { type TaskDetail, cancelTask, retryTask, taskQuery } from "./queries";

type Asked = "cancel" | "resolve" | "retry" | "delete";

/** What a person can do with a task; `dialog` asks first and stands wherever it is put. */
export function useActions(task: TaskSummary | TaskDetail, onDeleted: () => void): { ask: (what: Asked) => void; again: () => void; dialog: ReactNode } {
  const [, navigate] = useLocation();
  const [asked, setAsked] = useState<Asked | null>(null);
  const close = () => setAsked(null);
  const drop = async () => {
    await api.delete(`/api/tasks/${encodeURIComponent(task.id)}`);
    onDeleted();
    dropTask(client, task.id);
    say(`“${task.title}” is deleted.`);
  };
  const again = () => attempt(giveAgain(task).then(() => navigate(`/tasks/${NEW}`)));
  const dialog =
    asked === "resolve" ? (
      <Resolve task={task} onClose={close} />
    ) : asked === "cancel" ? (
      <ConfirmCancel isBegun={task.state !== "queued"} onConfirm={() => void attempt(cancelTask(task.id))} onClose={close} />
    ) : asked === "retry" ? (
      <Confirm
        title="Try this task once more?"
        text="It gets one more attempt, which is told what the earlier ones had begun, and to look before it repeats something."
        action="Try again"
        onConfirm={() => void attempt(retryTask(task.id))}
        onClose={close}
      />
    ) : asked === "delete" ? (
      <Confirm
        title="Delete this task?"
        text={`“${task.title}” goes with everything it said and did. What it changed in files stays. This cannot be undone.`}
        action="Delete"
        onConfirm={() => void attempt(drop())}
        onClose={close}
      />
    ) : null;
  return { ask: setAsked, again: () => void again(), dialog };
}

/** The same once more, as a new task that can be changed before it is given. */
async function giveAgain({ id }: { id: string }): Promise<void> {
  const task = await client.fetchQuery(taskQuery(id));
  if (!task) throw new Error("This task is gone.");
  const { prompt, workspaceId, agentId, model, priority } = task;
  const places = { prompt, workspaceId: await unlessDefault(workspaceId), agentId: agentId ?? "", model: model ?? "", priority: String(priority) };
  setDraft(NEW, () => putAll({}, places, BLANK));
}

async function unlessDefault(workspaceId: string): Promise<string> {
  const { items } = await client.fetchQuery(workspacesQuery);
  return items.find((each) => each.id === workspaceId)?.isDefault ? "" : workspaceId;
}
