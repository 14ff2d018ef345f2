import { Icon } from "./Icon";

/** Words to begin with, where there is nothing yet. */
export function Example({ words, onTake }: { words: string; onTake: (words: string) => void }) {
  return (
    <div className="card">
      <div className="body">
        <p className="xs faint">For example</p>
        <p>{words}</p>
        <button type="button" className="btn primary" onClick={() => onTake(words)}>
          <Icon name="pen" />
          Begin with this one
        </button>
      </div>
    </div>
  );
}
