import { useSyncExternalStore } from "react";
import { visible } from "../ui/visible";
import { Coded } from "../ui/Coded";
import { StateGlyph } from "../ui/StateGlyph";
import { Monogram } from "./Monogram";
import type { Outbox, Unsent } from "./outbox";

/** Posts that popagent has not taken yet, and what a person can do with each. */
export function Waiting({ outbox, items, onBack }: { outbox: Outbox; items: readonly Unsent[]; onBack: (unsent: Unsent) => void }) {
  return items.map((unsent) => <One key={unsent.id} outbox={outbox} unsent={unsent} onBack={onBack} />);
}

function One({ outbox, unsent, onBack }: { outbox: Outbox; unsent: Unsent; onBack: (unsent: Unsent) => void }) {
  const { is, why } = useSyncExternalStore(outbox.watch, () => outbox.standing(unsent.id));
  return (
    <article className="turn post unsent" aria-label="You, not sent yet">
      <Monogram kind="user" />
      <div className="post-head">
        <b>You</b>
      </div>
      <div className="post-body">
        <p className="told" dir="auto">
          {visible(unsent.post.body)}
        </p>
        {is === "sending" ? (
          <p className="stamp is-live">
            <StateGlyph state="running" />
            On its way
          </p>
        ) : (
          <div className="reason post-trouble" role="alert">
            <StateGlyph state={is === "waiting" ? "interrupted" : "failed"} />
            <span>
              <b className={is === "waiting" ? "is-wait" : "is-fail"}>Not sent.</b> <Coded text={visible(why)} />
              {is === "waiting" && " It is kept here and tried again by itself."}
            </span>
            <button type="button" className="btn dense" onClick={() => outbox.again(unsent.id)}>
              Send now
            </button>
            <button type="button" className="btn plain dense" onClick={() => onBack(unsent)}>
              Take it back
            </button>
          </div>
        )}
      </div>
    </article>
  );
}
