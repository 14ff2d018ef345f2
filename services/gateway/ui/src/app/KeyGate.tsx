import { type FormEvent, type ReactNode, useEffect, useState, useSyncExternalStore } from "react";
import { UNREACHABLE, onUnauthorized, refusal, sentence } from "../api/client";
import { key, onKeyChange, setKey } from "../api/key";
import { Icon, Logo } from "../ui/Icon";
import { client } from "./queries";

/** Shows its children until an answer says that a key is needed; then asks for it, and tries it before keeping it. */
export function KeyGate({ children }: { children: ReactNode }) {
  const [asked, setAsked] = useState(false);
  const current = useSyncExternalStore(onKeyChange, key);
  useEffect(() => onUnauthorized(() => setAsked(true)), []);
  // Another tab knows it now.
  useEffect(() => {
    if (current) setAsked(false);
  }, [current]);
  return asked ? (
    <KeyForm
      onDone={() => {
        setAsked(false);
        void client.invalidateQueries();
      }}
    />
  ) : (
    children
  );
}

/** Why the door does not take a key, in a sentence; null when it does. Nothing is kept. */
export async function tryKey(wanted: string): Promise<string | null> {
  // A header carries visible characters only; fetch would refuse the rest with a sentence of its own.
  if (!/^[\x21-\x7e]+$/.test(wanted)) return "A key has no spaces and no special letters. Was more copied than the key?";
  // Not by `request`: that a key is refused which is only tried must not open the question for the kept one.
  const response = await fetch("/api/workspaces", { headers: { "x-popagent-key": wanted } }).catch(() => null);
  if (response === null) return UNREACHABLE;
  if (response.ok) return null;
  if (response.status === 401) return "This key is not valid. The current one is in POPAGENT_API_KEY.";
  return sentence(await refusal(response));
}

function KeyForm({ onDone }: { onDone: () => void }) {
  const [value, setValue] = useState("");
  const [visible, setVisible] = useState(false);
  const [error, setError] = useState(key() ? "The key of this browser is not valid any more." : "");
  const [busy, setBusy] = useState(false);

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const wanted = value.trim();
    setBusy(true);
    setError("");
    const refusal = await tryKey(wanted);
    setBusy(false);
    if (refusal !== null) return setError(refusal);
    setKey(wanted);
    onDone();
  };

  return (
    <main className="gate">
      <form onSubmit={(event) => void submit(event)}>
        <div className="gate-head">
          <Logo />
          <span className="strong">popagent</span>
        </div>
        <h1>This popagent asks for its key</h1>
        <div className="field">
          <label htmlFor="key">Key</label>
          <div className="gate-key">
            <input
              id="key"
              className="input mono"
              type={visible ? "text" : "password"}
              autoComplete="current-password"
              autoCapitalize="off"
              spellCheck={false}
              autoFocus
              required
              value={value}
              aria-invalid={error !== ""}
              aria-describedby="key-error key-hint"
              onChange={(event) => {
                setValue(event.target.value);
                setError("");
              }}
            />
            <button type="button" className="btn" aria-pressed={visible} onClick={() => setVisible((was) => !was)}>
              {visible ? "Hide" : "Show"}
            </button>
          </div>
          <p id="key-error" className="error" role="alert">
            {error}
          </p>
        </div>
        <button type="submit" className="btn primary" disabled={busy || !value.trim()}>
          {busy ? "Trying it…" : "Go in"}
        </button>
        <p id="key-hint" className="small dim gate-hint">
          <Icon name="key" />
          <span>
            It is the value of <code>POPAGENT_API_KEY</code> where popagent runs: in its environment, or in the file{" "}
            <code>.env</code>. It stays in this browser and travels in a header only.
          </span>
        </p>
      </form>
    </main>
  );
}
