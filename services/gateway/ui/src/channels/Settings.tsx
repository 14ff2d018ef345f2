import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import { Link } from "wouter";
import { client } from "../app/queries";
import type { ChannelSettingsView } from "../contracts";
import { SaveBar } from "../editing/SaveBar";
import { type Form as EditedForm, formFields } from "../editing/formFields";
import { refusedBy } from "../editing/refused";
import { useSaving } from "../editing/useSaving";
import { Loading } from "../settings/Loading";
import { AgentPicker } from "../tasks/pickers";
import { Icon } from "../ui/Icon";
import { useTitle } from "../ui/useTitle";
import { exactly } from "../ui/words";
import { setDraft, useDraft } from "./draftStore";
import { type Draft, FIELDS, type Field, LABELS, ONE, type SettingsForm, afterSave, changes, conflicts, drafts, formOf, patchOf, shown } from "./form";
import { channelSettingsQuery, noteChannelSettings } from "./list";

const { change, Row, Flag } = formFields<SettingsForm, Field>({ drafting: drafts, setDraft, labels: LABELS, inWords });

/** What posts start, in all channels. */
export function Settings() {
  const settings = useQuery(channelSettingsQuery);
  useTitle("Who answers, Channels");
  return (
    <main className="main settings">
      <header className="bar">
        <Link href="/channels" className="btn plain square" aria-label="Back to the channels">
          <Icon name="left" />
        </Link>
        <h1>Who answers in channels</h1>
      </header>
      {settings.data ? (
        <Editor settings={settings.data} />
      ) : (
        <div className="scroll">
          <Loading query={settings} what="the settings">
            {() => null}
          </Loading>
        </div>
      )}
    </main>
  );
}

function Editor({ settings }: { settings: ChannelSettingsView }) {
  const draft = useDraft(ONE);
  const stored = formOf(settings);
  const saving = useSaving<ChannelSettingsView, Draft>({
    path: "/api/channels/settings",
    name: "settings",
    draft,
    patch: () => patchOf(draft, settings),
    keep: (view) => noteChannelSettings(client, view),
    onSaved: (view, sent) => setDraft(ONE, (now) => afterSave(now, sent, formOf(view))),
    told: "Saved. The next post goes by it.",
  });
  const form: EditedForm<SettingsForm, Field> = { id: ONE, stored, draft, wrong: refusedBy(saving.refusal, FIELDS), isNew: false };
  const { autoReply } = shown(stored, draft);
  return (
    <>
      <div className="scroll">
        <div className="settings-page">
          <p className="dim">
            An agent that a post names with @ answers it, always. This is about the other posts, in every channel. Each answer is a task and
            costs what a task costs.
          </p>
          <Flag form={form} field="autoReply" on="Are answered too" off="Start nothing" hint="Answers come into the thread of the post." />
          {autoReply && <WhoAnswers form={form} />}
          <p className="xs faint">{settings.revision === 0 ? "As popagent came." : `Revision ${settings.revision}, saved ${exactly(settings.updatedAt)}`}</p>
        </div>
      </div>
      <SaveBar
        what="settings"
        changed={changes(draft, stored).length}
        disputed={conflicts(draft, stored).length}
        wrong={0}
        saving={saving}
        overtaken="Others were stored meanwhile; they are shown now. Yours are kept: save again."
        onDiscard={() => setDraft(ONE, () => ({}))}
      />
    </>
  );
}

function WhoAnswers({ form }: { form: EditedForm<SettingsForm, Field> }) {
  const id = useId();
  return (
    <Row form={form} field="agentId" labelFor={id} hint="The orchestrator may ask the others.">
      <AgentPicker
        id={id}
        value={shown(form.stored, form.draft).agentId}
        isInvalid={form.wrong.agentId !== undefined}
        onChange={(value) => change(form, "agentId", value)}
      />
    </Row>
  );
}

function inWords(field: Field, value: SettingsForm[Field]): string {
  if (field === "autoReply") return value ? "Are answered too" : "Start nothing";
  return String(value) || "the orchestrator";
}
