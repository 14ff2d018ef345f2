import { Confirm } from "../ui/Dialog";

/** Ask before a task is told to end. */
export function ConfirmCancel({ isBegun, onConfirm, onClose }: { isBegun: boolean; onConfirm: () => void; onClose: () => void }) {
  return (
    <Confirm
      title="Cancel this task?"
      text={isBegun ? "It is told to end. What it has changed by then stays as it is." : "It waits and is not begun any more."}
      action="Cancel the task"
      dismiss="Let it go on"
      onConfirm={onConfirm}
      onClose={onClose}
    />
  );
}
