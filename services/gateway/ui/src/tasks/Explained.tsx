import { Example } from "../ui/Example";

const EXAMPLE = "Read the documentation of this workspace and list every link that leads nowhere, with its file and its line.";

/** What a task is, where there is none, with one to begin with. */
export function Explained({ onTake }: { onTake: (prompt: string) => void }) {
  return (
    <div className="empty task-explained">
      <h2>No tasks yet</h2>
      <p>
        A task goes on when you close this page. An agent carries it out in a workspace, and every step it takes is kept here. What
        fails for a passing reason is tried again; what needs you waits under Needs you.
      </p>
      <Example words={EXAMPLE} onTake={onTake} />
    </div>
  );
}
