import { type FormEvent, type ReactNode, useEffect, useState, useSyncExternalStore } from "react";
import { ApiError, onUnauthorized, request, sentence } from "../api/client";
import { key, onKeyChange, setKey } from "../api/key";
import { Logo } from "../ui/Icon";
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

function KeyForm({ onDone }: { onDone: () => void }) {
  const [value, setValue] = useState("");
  const [error, setError] = useState(key() ? "This key is not valid any more." : "");
  const [busy, setBusy] = useState(false);

  const submit = async (event: FormEvent) => {
    event.preventDefault();
    const wanted = value.trim();
    setBusy(true);
    setError("");
    try {
      await request("GET", "/api/workspaces", { headers: { "x-popagent-key": wanted } });
      setKey(wanted);
      onDone();
    } catch (failure) {
      const refused = failure instanceof ApiError && failure.status === 401;
      setError(refused ? "This key is not valid. The current one is in POPAGENT_API_KEY." : sentence(failure));
    } finally {
      setBusy(false);
    }
  };

  return (
    <main className="gate">
      <form onSubmit={submit}>
        <Logo />
        <h1>This popagent wants its key</h1>
        <p className="dim">
          It is the value of <code>POPAGENT_API_KEY</code> where popagent runs. It stays in this browser and travels in
          a header only.
        </p>
        <div className="field">
          <label htmlFor="key">Key</label>
          <input
            id="key"
            className="input"
            type="password"
            autoComplete="current-password"
            autoFocus
            required
            value={value}
            aria-invalid={error !== ""}
            aria-describedby="key-error"
            onChange={(event) => setValue(event.target.value)}
          />
          <p id="key-error" className="error" role="alert">
            {error}
          </p>
        </div>
        <button type="submit" className="btn primary" disabled={busy || !value.trim()}>
          {busy ? "Trying it…" : "Go in"}
        </button>
      </form>
    </main>
  );
}
