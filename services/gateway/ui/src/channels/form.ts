import type { ChannelSettingsPatch, ChannelSettingsView } from "../contracts";
import { type DraftOf, drafting } from "../editing/draft";

/** What posts start, as it is chosen: an empty agent is the orchestrator. */
export interface SettingsForm {
  autoReply: boolean;
  agentId: string;
}

export const FIELDS = ["autoReply", "agentId"] as const;
export type Field = (typeof FIELDS)[number];
export type Draft = DraftOf<SettingsForm, Field>;
export const drafts = drafting<SettingsForm, Field>(FIELDS);
export const { shown, changes, changed, conflicts, afterSave } = drafts;

export const LABELS: Readonly<Record<Field, string>> = {
  autoReply: "Posts that name nobody",
  agentId: "Who answers them",
};
export const ONE = "channels";

export function formOf({ autoReply, agentId }: ChannelSettingsView): SettingsForm {
  return { autoReply, agentId: agentId ?? "" };
}

/** What is sent: only what changed, and the revision that it was compared with. */
export function patchOf(draft: Draft, settings: ChannelSettingsView): ChannelSettingsPatch {
  const { agentId, ...rest } = changed(draft, formOf(settings));
  return { revision: settings.revision, ...rest, ...(agentId !== undefined && { agentId: agentId || null }) };
}
