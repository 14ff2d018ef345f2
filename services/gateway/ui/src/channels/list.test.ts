import { QueryClient } from "@tanstack/react-query";
import { describe, expect, it } from "vitest";
import type { ChannelList, ChannelMessageChanged, ChannelSettingsView, ChannelView } from "../contracts";
import { MOST_UNREAD, channelSettingsQuery, channelsQuery, noteChannelSettings, noteMessage, unreadWord, withChannel, withNews } from "./list";

function channel(fields: Partial<ChannelView> = {}): ChannelView {
  return { id: "general", title: "#general", lastSeq: 4, lastReadSeq: 4, unread: 0, revision: 9, createdAt: "2026-05-01T10:00:00Z", ...fields };
}

function list(...items: ChannelView[]): ChannelList {
  return { items, nextCursor: null };
}

function told(seq: number, fields: Partial<ChannelMessageChanged> = {}): ChannelMessageChanged {
  return {
    eventId: `e${seq}`,
    aggregateId: `m${seq}`,
    version: seq + 5,
    at: "2026-05-01T10:00:00Z",
    channelId: "general",
    messageId: `m${seq}`,
    seq,
    threadId: null,
    authorKind: "agent",
    runState: null,
    taskId: null,
    deleted: false,
    excerpt: "",
    ...fields,
  };
}

const only = (found: ChannelList | null) => found?.items[0];

describe("what is unread", () => {
  it("counts what others write, each message once", () => {
    const once = withNews(list(channel()), told(5));

    expect(only(once)).toMatchObject({ lastSeq: 5, unread: 1 });
    expect(once && withNews(once, told(5, { version: 30 }))).toBe(once);
    expect(only(withNews(list(channel()), told(5, { authorKind: "user" })))).toMatchObject({ lastSeq: 5, unread: 0 });
    expect(only(withNews(list(channel({ unread: MOST_UNREAD })), told(5)))?.unread).toBe(MOST_UNREAD);
  });

  it("is asked for anew where something was missed, taken away, or written into a channel that is new", () => {
    expect(withNews(list(channel()), told(7))).toBeNull();
    expect(withNews(list(channel()), told(3, { deleted: true }))).toBeNull();
    expect(withNews(list(channel()), told(1, { channelId: "other" }))).toBeNull();
  });

  it("never comes back by an older answer", () => {
    const known = list(channel({ lastReadSeq: 4, unread: 0 }));

    expect(withChannel(known, channel({ lastReadSeq: 3, unread: 1 }))).toBe(known);
    expect(withChannel(known, channel({ lastSeq: 3, lastReadSeq: 4 }))).toBe(known);
    expect(only(withChannel(list(channel({ lastReadSeq: 2, unread: 2 })), channel()))?.unread).toBe(0);
  });

  it("is told in the list that is shown", () => {
    const client = new QueryClient();
    client.setQueryData(channelsQuery.queryKey, list(channel()));

    noteMessage(client, told(5));

    expect(only(client.getQueryData(channelsQuery.queryKey) ?? null)?.unread).toBe(1);
    expect([unreadWord(3), unreadWord(MOST_UNREAD)]).toEqual(["3", "1,000+"]);
  });
});

it("settings that were told late do not take newer ones back", () => {
  const client = new QueryClient();
  const settings: ChannelSettingsView = { autoReply: true, agentId: null, revision: 3, updatedAt: "2026-05-01T10:00:00Z" };
  client.setQueryData(channelSettingsQuery.queryKey, settings);

  noteChannelSettings(client, { ...settings, autoReply: false, revision: 2 });
  expect(client.getQueryData(channelSettingsQuery.queryKey)?.autoReply).toBe(true);
  noteChannelSettings(client, { ...settings, autoReply: false, revision: 4 });
  expect(client.getQueryData(channelSettingsQuery.queryKey)?.autoReply).toBe(false);
});
