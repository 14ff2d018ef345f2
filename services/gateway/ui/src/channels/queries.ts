import { api } from "../api/client";
import { client } from "../app/queries";
import type { ChannelMessage, ChannelView } from "../contracts";
import { noteMessage } from "./channelLog";
import { channelsQuery, withChannel } from "./list";

const at = (channelId: string, rest: string) => `/api/channels/${encodeURIComponent(channelId)}/${rest}`;

export const pathOf = (message: ChannelMessage): string => at(message.channelId, `messages/${encodeURIComponent(message.id)}`);

export async function editMessage(message: ChannelMessage, body: string): Promise<void> {
  noteMessage(await api.patch<ChannelMessage>(pathOf(message), { body }));
}

export async function cancelRun(message: ChannelMessage): Promise<void> {
  noteMessage(await api.post<ChannelMessage>(`${pathOf(message)}/cancel`));
}

/** How far it was read, as far as is known here. */
export function readUpTo(channelId: string): number {
  return client.getQueryData(channelsQuery.queryKey)?.items.find(({ id }) => id === channelId)?.lastReadSeq ?? 0;
}

export async function markRead(channelId: string, seq: number): Promise<void> {
  const channel = await api.put<ChannelView>(at(channelId, "read"), { seq });
  client.setQueryData(channelsQuery.queryKey, (list) => list && withChannel(list, channel));
}
