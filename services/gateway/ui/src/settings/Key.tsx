import { useQuery } from "@tanstack/react-query";
import { type FormEvent, useState, useSyncExternalStore } from "react";
import { key, onKeyChange, setKey } from "../api/key";
import { tryKey } from "../app/KeyGate";
import { client, workspacesQuery } from "../app/queries";
import { forgetDrafts } from "../chat/drafts";
import { Confirm } from "../ui/Dialog";
import { Icon } from "../ui/Icon";
import { say } from "../ui/toasts";

const SHOWN = 4;

/** Which key this browser shows at the door. */
export function Key() {
  const current = useSyncExternalStore(onKeyChange, key);
  // Any answer tells whether the door lets this browser in as it is.
  const known = useQuery(workspacesQuery);
  const [asked, setAsked] = useState(false);
  return (
    <div className="scroll">
      <div className="settings-page">
        <section className="card" aria-label="The key of this browser">
          <div className="body">
            <div className="line">
              <Icon name="key" />
              <h2 className="grow">
                {current ? (
                  <>
                    A key is kept here{current.length > 2 * SHOWN && <span className="mono dim">, ends in {current.slice(-SHOWN)}</span>}
                  </>
                ) : (
                  "No key is kept here"
                )}
              </h2>
              {known.data && <span className="chip ok">{current ? "Valid" : "None is needed"}</span>}
            </div>
            <p className="dim">
              {current
                ? "It lies in this browser's storage, travels in a header only, and is never part of an address. Other devices have their own copy."
                : "This popagent lets everybody in who reaches it, as on a machine of one's own. A key is asked for when POPAGENT_API_KEY is set where it runs."}
            </p>
            {current && (
              <div className="line">
                <button type="button" className="btn danger" onClick={() => setAsked(true)}>
                  Forget it
                </button>
              </div>
            )}
          </div>
        </section>
        <Replace />
      </div>
      {asked && (
        <Confirm
          title="Forget the key in this browser?"
          text="This page asks for it again before it shows anything. popagent and its chats stay as they are."
          action="Forget it"
          onConfirm={() => {
            setKey("");
            // What was written and not sent is the same person's.
            forgetDrafts();
            client.clear();
            location.assign("/");
          }}
          onClose={() => setAsked(false)}
        />
      )}
    </div>
  );
}

function Replace() {
  const [value, setValue] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    const refusal = await tryKey(value.trim());
    setBusy(false);
    setError(refusal ?? "");
    if (refusal === null) {
      setKey(value.trim());
      setValue("");
      say("The new key is valid and kept here.");
    }
  };
  return (
    <section className="settings-group">
      <h2>Another key</h2>
      <form className="connect" onSubmit={(event) => void submit(event)}>
        <div className="field">
          <label htmlFor="new-key">Key</label>
          <input
            id="new-key"
            className="input mono"
            type="password"
            autoComplete="off"
            value={value}
            aria-invalid={error !== ""}
            aria-describedby="new-key-hint"
            onChange={(event) => {
              setValue(event.target.value);
              setError("");
            }}
          />
          <p id="new-key-hint" className={error ? "error" : "hint"} role={error ? "alert" : undefined}>
            {error || (
              <>
                The value of <code>POPAGENT_API_KEY</code> where popagent runs. It is tried before it replaces what is kept.
              </>
            )}
          </p>
        </div>
        <div className="line">
          <button type="submit" className="btn" disabled={!value.trim() || busy}>
            {busy ? "Trying it…" : "Try and keep it"}
          </button>
        </div>
      </form>
    </section>
  );
}
