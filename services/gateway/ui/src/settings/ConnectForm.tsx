import { useMutation, useQuery } from "@tanstack/react-query";
import { type FormEvent, useEffect, useId, useRef, useState } from "react";
import { ApiError, api, request, sentence } from "../api/client";
import { client, connectionQuery, healthQuery, modelsQuery } from "../app/queries";
import type { ConnectionTestView, DetectedServer, ModelConnectionView } from "../contracts";
import { Icon } from "../ui/Icon";
import { StateGlyph } from "../ui/StateGlyph";
import { say } from "../ui/toasts";
import { duration, plural } from "../ui/words";
import { useNow } from "../ui/useNow";
import { detectQuery, keyField, keyOf } from "./connection";

/** Connect any OpenAI-compatible server: found on this machine or typed, tried, then saved. */
export function ConnectForm({ view }: { view: ModelConnectionView }) {
  const id = useId();
  const [url, setUrl] = useState(view.url ?? "");
  const [key, setKey] = useState("");
  const [removed, setRemoved] = useState(false);
  const choice = keyOf(view, url, key, removed);
  const body = { url: url.trim(), ...keyField(choice) };
  const test = useTest();
  const save = useMutation({
    mutationFn: () => api.put<ModelConnectionView>("/api/models/connection", { revision: view.revision, ...body }),
    onSuccess: (saved) => {
      client.setQueryData(connectionQuery.queryKey, saved);
      for (const { queryKey } of [modelsQuery, healthQuery]) void client.invalidateQueries({ queryKey });
      setKey("");
      setRemoved(false);
      setUrl(saved.url ?? "");
      test.forget();
      say("Connected. The next answer comes from it.");
    },
    onError: (error) => {
      if (error instanceof ApiError && error.status === 409) void client.invalidateQueries({ queryKey: connectionQuery.queryKey });
    },
  });
  const refusal = save.error ?? test.error;
  const field = refusal instanceof ApiError ? refusal.field : null;
  const edit = (change: () => void) => {
    change();
    test.forget();
    save.reset();
  };
  const use = (server: DetectedServer) => {
    edit(() => {
      setUrl(server.url);
      setKey("");
    });
    if (server.needsKey) document.getElementById(`${id}-key`)?.focus();
    else void test.run({ url: server.url, ...keyField(keyOf(view, server.url, "", false)) });
  };
  const submit = (event: FormEvent) => {
    event.preventDefault();
    save.mutate();
  };
  const isEmpty = body.url === "";
  const isSaved = body.url === view.url && key === "" && !removed;

  return (
    <section className="settings-group">
      <h2>{view.url ? "Connect another model" : "Connect a model"}</h2>
      <p className="small dim">
        Any server that speaks as OpenAI does: Ollama, LM Studio, llama.cpp, vLLM, 9Router, a hosted one. Nothing is used
        before you save it.
      </p>
      <Detected current={view.url} onUse={use} />
      <form className="connect" onSubmit={submit}>
        <div className="field">
          <label htmlFor={`${id}-url`}>Address</label>
          <input
            id={`${id}-url`}
            className="input mono"
            inputMode="url"
            autoComplete="off"
            autoCapitalize="off"
            spellCheck={false}
            placeholder="http://127.0.0.1:11434/v1"
            value={url}
            aria-invalid={field === "url"}
            aria-describedby={`${id}-url-hint`}
            onChange={(event) => edit(() => setUrl(event.target.value))}
          />
          <p id={`${id}-url-hint`} className="hint">
            As seen from where popagent runs. It ends in <code>/v1</code> as a rule.
          </p>
        </div>
        <div className="field">
          <label htmlFor={`${id}-key`}>Key</label>
          <input
            id={`${id}-key`}
            className="input mono"
            type="password"
            autoComplete="off"
            placeholder={choice.kind === "kept" ? `kept${view.keyHint ? `, ends in ${view.keyHint}` : ""}` : "none, as for a server of your own"}
            value={key}
            aria-invalid={field === "key"}
            aria-describedby={`${id}-key-hint`}
            onChange={(event) => edit(() => setKey(event.target.value))}
          />
          <p id={`${id}-key-hint`} className="hint">
            It is sealed before it is stored and never shown again.{" "}
            {choice.kind === "kept" && (
              <button type="button" className="link" onClick={() => edit(() => setRemoved(true))}>
                Remove the kept key
              </button>
            )}
            {removed && <span className="is-wait">The kept key is removed when you save.</span>}
          </p>
        </div>
        {refusal && (
          <p className="is-fail small" role="alert">
            {conflict(refusal, view) ?? sentence(refusal)}
          </p>
        )}
        <Result test={test} onModel={(model) => void test.run({ ...body, model })} />
        <div className="line wrap">
          <button type="button" className="btn" disabled={isEmpty || test.busy} onClick={() => void test.run(body)}>
            {test.busy ? "Testing…" : "Test"}
          </button>
          <button type="submit" className="btn primary" disabled={isEmpty || isSaved || save.isPending}>
            {save.isPending ? "Saving…" : isSaved ? "Saved" : test.result && !test.result.ok ? "Save all the same" : "Save"}
          </button>
        </div>
      </form>
    </section>
  );
}

function conflict(error: Error, view: ModelConnectionView): string | null {
  if (!(error instanceof ApiError) || error.code !== "revision_conflict") return null;
  return `Somebody else saved meanwhile: stored is ${view.url ?? "no server"}. What you typed is kept; save again to replace it.`;
}

/** The servers that answer on the machine of popagent now. */
function Detected({ current, onUse }: { current: string | null; onUse: (server: DetectedServer) => void }) {
  const detected = useQuery(detectQuery);
  const servers = detected.data?.items ?? [];
  return (
    <div className="detected">
      <div className="line">
        <h3 className="grow">On this machine</h3>
        <button type="button" className="btn plain dense" disabled={detected.isFetching} onClick={() => void detected.refetch()}>
          <Icon name="retry" />
          {detected.isFetching ? "Looking…" : "Look again"}
        </button>
      </div>
      {servers.length > 0 && (
        <ul>
          {servers.map((server) => (
            <li key={server.url} className="line">
              <Icon name="model" />
              <span className="grow detected-server">
                <span className="strong">{server.name}</span>
                <span className="mono xs faint cut">{server.url}</span>
              </span>
              <span className="xs faint">{server.needsKey ? "wants a key" : plural(server.models.length, "model")}</span>
              {server.url === current ? (
                <span className="chip ok">connected</span>
              ) : (
                <button type="button" className="btn dense" aria-label={`Use ${server.name} at ${server.url}`} onClick={() => onUse(server)}>
                  Use
                </button>
              )}
            </li>
          ))}
        </ul>
      )}
      <p className="small dim" role="status">
        {detected.error
          ? sentence(detected.error)
          : !detected.isFetching && servers.length === 0
            ? "No model server answers at the usual ports. Start one and look again, or type its address."
            : ""}
      </p>
    </div>
  );
}

interface TestBody {
  url: string;
  key?: string | null;
  model?: string;
}

/** One test at a time; forgetting it also cancels it. */
function useTest() {
  const [result, setResult] = useState<ConnectionTestView | null>(null);
  const [error, setError] = useState<Error | null>(null);
  const [since, setSince] = useState<number | null>(null);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);
  const forget = () => {
    running.current?.abort();
    running.current = null;
    setResult(null);
    setError(null);
    setSince(null);
  };
  const run = async (body: TestBody) => {
    forget();
    const abort = new AbortController();
    running.current = abort;
    setSince(Date.now());
    try {
      const response = await request("POST", "/api/models/connection/test", { body, signal: abort.signal });
      const found = (await response.json()) as ConnectionTestView;
      if (running.current === abort) setResult(found);
    } catch (failure) {
      if (running.current === abort) setError(failure as Error);
    } finally {
      if (running.current === abort) setSince(null);
    }
  };
  return { result, error, since, busy: since !== null, run, forget };
}

function Result({ test, onModel }: { test: ReturnType<typeof useTest>; onModel: (model: string) => void }) {
  const { result } = test;
  return (
    <div role="status" className="tested">
      {test.since !== null && <Waiting since={test.since} onCancel={test.forget} />}
      {result && (
        <div className={`remark ${result.ok ? "ok" : "fail"}`}>
          <StateGlyph state={result.ok ? "completed" : "failed"} label={result.ok ? "It answers" : "It does not answer"} />
          <div className="grow">
            <p>{result.sentence}</p>
            {result.modelCount > 0 && (
              <p className="small dim">
                {plural(result.modelCount, "model")}
                {result.latencyMs !== null && ` · ${duration(result.latencyMs)} to the first ${result.answeredBy ? "word" : "answer"}`}
              </p>
            )}
            {result.models.length > 1 && (
              <label className="line wrap small">
                Try another of them:
                <select className="input" value={result.answeredBy ?? ""} onChange={(event) => onModel(event.target.value)}>
                  {result.answeredBy === null && <option value="">choose</option>}
                  {result.models.map((model) => (
                    <option key={model}>{model}</option>
                  ))}
                </select>
              </label>
            )}
          </div>
        </div>
      )}
    </div>
  );
}

const LONGEST_MS = 15_000;

function Waiting({ since, onCancel }: { since: number; onCancel: () => void }) {
  const took = Math.max(0, useNow(true, 200) - since);
  return (
    <div className="remark">
      <div className="grow">
        <p>{took < 4_000 ? "Asking for its models and a few words…" : "Waiting for its first word. A model that is loading takes a while…"}</p>
        <progress className="meter" aria-label="Testing" max={LONGEST_MS} value={took} />
      </div>
      <span className="small faint" aria-hidden="true">
        {Math.floor(took / 1_000)} s
      </span>
      <button type="button" className="btn dense" onClick={onCancel}>
        Cancel
      </button>
    </div>
  );
}
