import { type QueryClient, queryOptions, useQuery } from "@tanstack/react-query";
import { api } from "../api/client";
import type { ChannelList, ChannelMessageChanged, ChannelSettingsView, ChannelView } from "../contracts";

/** Everything that is known of channels, but what was written into them, is kept below this key. */
const CHANNELS = "channels";
/** More are not counted. */
export const MOST_UNREAD = 1_000;

export const channelsQuery = queryOptions({
  queryKey: [CHANNELS, "list"],
  queryFn: ({ signal }) => api.get<ChannelList>("/api/channels", signal),
  // What was read on another device is told by nobody.
  refetchOnWindowFocus: "always",
});

export const channelSettingsQuery = queryOptions({
  queryKey: [CHANNELS, "settings"],
  queryFn: ({ signal }) => api.get<ChannelSettingsView>("/api/channels/settings", signal),
});

/** How much was written by others and not read, in all channels. Asked for when it is `wanted`. */
export function useUnread(wanted: boolean): number {
  const channels = useQuery({ ...channelsQuery, enabled: wanted }).data?.items ?? [];
  return channels.reduce((sum, { unread }) => sum + unread, 0);
}

/** 3, 1,000+: how much is unread, in a badge. */
export function unreadWord(unread: number): string {
  return unread >= MOST_UNREAD ? `${MOST_UNREAD.toLocaleString()}+` : String(unread);
}

/** The list after a message was told; null where only the server knows. */
export function withNews(list: ChannelList, told: ChannelMessageChanged): ChannelList | null {
  const known = list.items.find(({ id }) => id === told.channelId);
  // One that was not counted before, or is to be counted no more.
  if (!known || told.deleted || told.seq > known.lastSeq + 1) return null;
  if (told.seq <= known.lastSeq) return list;
  const unread = Math.min(MOST_UNREAD, known.unread + (told.authorKind === "user" ? 0 : 1));
  return replaced(list, { ...known, lastSeq: told.seq, revision: Math.max(known.revision, told.version), unread });
}

/** The list with a channel as the server has just told it; how far it was read never goes back. */
export function withChannel(list: ChannelList, channel: ChannelView): ChannelList {
  const known = list.items.find(({ id }) => id === channel.id);
  return known && (known.lastReadSeq > channel.lastReadSeq || known.lastSeq > channel.lastSeq) ? list : replaced(list, channel);
}

function replaced(list: ChannelList, channel: ChannelView): ChannelList {
  return { ...list, items: list.items.map((each) => (each.id === channel.id ? channel : each)) };
}

export function noteMessage(client: QueryClient, told: ChannelMessageChanged): void {
  const list = client.getQueryData(channelsQuery.queryKey);
  const after = list && withNews(list, told);
  if (after) client.setQueryData(channelsQuery.queryKey, after);
  // What is on its way may have been read before this was written.
  if (!after || client.getQueryState(channelsQuery.queryKey)?.fetchStatus === "fetching") {
    void client.invalidateQueries({ queryKey: channelsQuery.queryKey });
  }
}

export function noteChannelSettings(client: QueryClient, settings: ChannelSettingsView): void {
  client.setQueryData(channelSettingsQuery.queryKey, (known) => (known && known.revision > settings.revision ? known : settings));
}
