import { useMutation } from "@tanstack/react-query";
import { type SyntheticEvent, useId, useState } from "react";
import { sentence } from "../api/client";
import { Dialog } from "../ui/Dialog";
import { say } from "../ui/toasts";
import { visible } from "../ui/visible";
import { plural } from "../ui/words";
import { resolveTask } from "./queries";

const EVIDENCE_CHARACTERS = 4_000;

/** Ask why a task counts as done; the answer is kept with it. */
export function Resolve({ task, onClose }: { task: { id: string; title: string }; onClose: () => void }) {
  const [evidence, setEvidence] = useState("");
  const id = useId();
  const resolve = useMutation({
    mutationFn: () => resolveTask(task.id, evidence),
    onSuccess: () => {
      onClose();
      say(`“${task.title}” counts as done.`);
    },
  });
  const length = [...evidence].length;
  const isTooLong = length > EVIDENCE_CHARACTERS;
  const canSend = evidence.trim() !== "" && !isTooLong && !resolve.isPending;
  const submit = (event: SyntheticEvent) => {
    event.preventDefault();
    if (canSend) resolve.mutate();
  };
  return (
    <Dialog label="Resolve" onClose={onClose}>
      <form onSubmit={submit}>
        <h2>Resolve “{visible(task.title)}”</h2>
        <p className="dim">It counts as done from then on, and nothing tries it again. What you write is kept with it.</p>
        <div className="field">
          <label htmlFor={id}>How do you know that it is done?</label>
          <textarea
            id={id}
            className="input"
            rows={4}
            dir="auto"
            autoFocus
            value={evidence}
            aria-invalid={isTooLong || resolve.isError}
            aria-describedby={`${id}-error`}
            onChange={(event) => setEvidence(event.target.value)}
            onKeyDown={(event) => event.key === "Enter" && (event.ctrlKey || event.metaKey) && submit(event)}
          />
          <p className="error" role="alert" id={`${id}-error`}>
            {isTooLong ? `${plural(length, "character")}; at most ${EVIDENCE_CHARACTERS.toLocaleString()} fit.` : resolve.error && sentence(resolve.error)}
          </p>
        </div>
        <div className="actions">
          <button type="button" className="btn" onClick={onClose}>
            Cancel
          </button>
          <button type="submit" className="btn primary" disabled={!canSend}>
            {resolve.isPending ? "Resolving…" : "Resolve"}
          </button>
        </div>
      </form>
    </Dialog>
  );
}
