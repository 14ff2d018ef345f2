import { Example } from "../ui/Example";

const EXAMPLE = "@researcher what is written in the README of this workspace?";

/** What a channel is, where nothing was written yet, with a post to begin with. */
export function Explained({ title, onTake }: { title: string; onTake: (text: string) => void }) {
  return (
    <div className="empty">
      <h2>Nothing was written in {title} yet</h2>
      <p>
        Finished tasks post here what came of them, and why they failed. You can write as well: name an agent with @ and it works on
        your words as a task; its answer comes into the thread, also when this page is closed.
      </p>
      <Example words={EXAMPLE} onTake={onTake} />
    </div>
  );
}
