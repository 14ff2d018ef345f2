import { useMutation } from "@tanstack/react-query";
import { api, sentence } from "../api/client";
import type { HookTrialView, HookView } from "../contracts";
import { Icon } from "../ui/Icon";
import { StateGlyph } from "../ui/StateGlyph";
import { useNow } from "../ui/useNow";
import { visible } from "../ui/visible";
import { duration } from "../ui/words";
import { EVENTS } from "./events";
import { verdict } from "./verdict";

/** Send the stored hook an example of its event, and show what came of it. */
export function Trial({ hook, isChanged }: { hook: HookView; isChanged: boolean }) {
  const test = useMutation({ mutationFn: () => api.post<HookTrialView>(`/api/hooks/${hook.id}/test`) });
  return (
    <section className="settings-group" aria-labelledby="trial">
      <h2 id="trial">Try it</h2>
      <p className="small dim">
        It is sent an example of its event, marked as a test; nothing is stored.
        {isChanged && <b className="is-wait"> What is tried is the saved hook, without your changes.</b>}
      </p>
      <div className="line">
        <button type="button" className="btn" disabled={test.isPending} onClick={() => test.mutate()}>
          {test.isPending ? <Waiting since={test.submittedAt} /> : test.data ? "Test again" : "Test"}
        </button>
      </div>
      <div role="status" className="tested trial">
        {test.data && !test.isPending && <Result hook={hook} trial={test.data} />}
      </div>
      {test.error && !test.isPending && (
        <p className="is-fail small" role="alert">
          {sentence(test.error)}
        </p>
      )}
    </section>
  );
}

function Waiting({ since }: { since: number }) {
  const took = Math.floor((useNow(true, 200) - since) / 1_000);
  return took > 0 ? `Asking… ${took} s` : "Asking…";
}

function Result({ hook, trial }: { hook: HookView; trial: HookTrialView }) {
  const { words, tone } = verdict(trial);
  return (
    <>
      <div className={`remark ${tone}`}>
        {tone === "ok" ? <StateGlyph state="completed" /> : <Icon name="alert" />}
        <div className="grow">
          <p>
            <b>{words}</b> · {duration(trial.durationMs)}
          </p>
          {trial.reason && <p>{visible(trial.reason)}</p>}
          {trial.status === "denied" && <p className="dim">In a chat: {EVENTS[hook.event].refusal}</p>}
        </div>
      </div>
      <h3>What it was sent</h3>
      <pre className="well bounded" tabIndex={0} aria-label="What it was sent">
        {visible(JSON.stringify(trial.sent, null, 2))}
      </pre>
      <h3>What it answered</h3>
      {trial.output ? (
        <pre className="well bounded" tabIndex={0} aria-label="What it answered">
          {visible(trial.output)}
        </pre>
      ) : (
        <p className="small faint">Nothing{trial.status === "ok" && trial.decision === "allow" ? ", which agrees" : ""}.</p>
      )}
    </>
  );
}
