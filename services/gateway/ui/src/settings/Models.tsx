import { useMutation, useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, sentence } from "../api/client";
import { client, connectionQuery, modelsQuery, settingsQuery } from "../app/queries";
import type { ModelConnectionView } from "../contracts";
import { Confirm } from "../ui/Dialog";
import { StateGlyph } from "../ui/StateGlyph";
import { say } from "../ui/toasts";
import { count } from "../ui/words";
import { Coded } from "../ui/Coded";
import { ConnectForm } from "./ConnectForm";
import { Loading } from "./Loading";
import { RuntimeFields } from "./RuntimeFields";
import { SaveSettings, useSave } from "./SaveSettings";
import { useDraft } from "./draftStore";
import { MODEL_FIELDS } from "./fields";

/** Which model answers and what that means; how another one is connected; which of its models is taken. */
export function Models() {
  const connection = useQuery(connectionQuery);
  const settings = useQuery(settingsQuery);
  const draft = useDraft();
  const saving = useSave(settings.data, draft);
  return (
    <>
      <div className="scroll">
        <div className="settings-page">
          <Loading query={connection} what="the connection">
            {(view) => (
              <>
                <Answers view={view} />
                {view.source !== "environment" && <ConnectForm view={view} />}
              </>
            )}
          </Loading>
          {settings.data && (
            <section className="settings-group">
              <h2>Which model is taken</h2>
              <RuntimeFields fields={MODEL_FIELDS} stored={settings.data} draft={draft} refused={saving.refused} />
            </section>
          )}
        </div>
      </div>
      {settings.data && <SaveSettings stored={settings.data} draft={draft} saving={saving} />}
    </>
  );
}

const MEANING: Record<ModelConnectionView["source"], string> = {
  environment: "It is named where popagent runs, by `POPAGENT_MODEL_URL`, and changed there: that goes before this page.",
  page: "It was connected in this page. Every new answer comes from it.",
  embedded: "",
  none: "No model answers. Chats can be read, and questions wait until one is connected.",
};

function Answers({ view }: { view: ModelConnectionView }) {
  const { data: models } = useQuery(modelsQuery);
  const model = view.source === "embedded" ? (view.model ?? view.embedded.model) : view.model;
  const well = view.lastError === null && view.source !== "none";
  // Saved, and turned off by the source that was chosen.
  const isIdle = view.url !== null && view.source === "embedded";
  const context = model ? models?.contextWindows[model] : undefined;
  return (
    <section className="card answers" aria-label="What answers now">
      <div className="body">
        <div className="line">
          <StateGlyph state={well ? "completed" : "failed"} label={well ? "answers" : "does not answer"} />
          <h2 className="grow answers-name">{model ?? (view.source === "none" ? "No model" : "A model that is not known yet")}</h2>
          <span className={`chip ${well ? "ok" : "fail"}`}>{well ? "Answers" : "Does not answer"}</span>
        </div>
        {view.lastError && (
          <p className="is-fail" role="alert">
            <Coded text={view.lastError} />
          </p>
        )}
        <p className="dim">
          {view.source === "embedded" && "It comes with popagent and runs on this machine. "}
          <Coded text={view.source === "embedded" ? view.embedded.note : MEANING[view.source]} />
        </p>
        {isIdle && (
          <p className="dim">
            The connection to <code>{view.url}</code> is kept and not used: below, answers come from the embedded model only.
          </p>
        )}
        {((view.url && !isIdle) || context) && (
          <dl className="facts">
            {view.url && !isIdle && (
              <>
                <dt>Server</dt>
                <dd className="mono">{view.url}</dd>
                <dt>Key</dt>
                <dd>{view.hasKey ? (view.keyHint ? `kept, ends in ${view.keyHint}` : "kept") : "none"}</dd>
              </>
            )}
            {context && (
              <>
                <dt>Reads at once</dt>
                <dd>{count(context)} tokens</dd>
              </>
            )}
          </dl>
        )}
        {view.url && view.source !== "environment" && <Disconnect url={view.url} />}
      </div>
    </section>
  );
}

function Disconnect({ url }: { url: string }) {
  const [asked, setAsked] = useState(false);
  const drop = useMutation({
    mutationFn: () => api.delete<ModelConnectionView>("/api/models/connection"),
    onSuccess: (view) => {
      client.setQueryData(connectionQuery.queryKey, view);
      void client.invalidateQueries({ queryKey: modelsQuery.queryKey });
      say("Disconnected. Address and key are forgotten.");
    },
  });
  return (
    <div className="line wrap">
      <button type="button" className="btn" disabled={drop.isPending} onClick={() => setAsked(true)}>
        {drop.isPending ? "Disconnecting…" : "Disconnect"}
      </button>
      {drop.error && (
        <span className="is-fail small" role="alert">
          {sentence(drop.error)}
        </span>
      )}
      {asked && (
        <Confirm
          title="Disconnect this model?"
          text={`Address and key of ${url} are forgotten. Chats stay; new answers come from the embedded model, if there is one.`}
          action="Disconnect"
          onConfirm={() => drop.mutate()}
          onClose={() => setAsked(false)}
        />
      )}
    </div>
  );
}
