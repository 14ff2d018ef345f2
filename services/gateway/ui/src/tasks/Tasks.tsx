import { Board } from "./Board";
import { Inbox } from "./Inbox";
import { NewTask } from "./NewTask";
import { TaskScreen } from "./TaskScreen";
import { NEW } from "./form";
import "../settings/settings.css";
import "./tasks.css";

/** The board, a new task, the one whose id is `id`, or what waits for a person. */
export function Tasks({ id, isInbox = false }: { id: string | null; isInbox?: boolean }) {
  if (isInbox) return <Inbox />;
  if (id === NEW) return <NewTask />;
  return id === null ? <Board /> : <TaskScreen key={id} id={id} />;
}
