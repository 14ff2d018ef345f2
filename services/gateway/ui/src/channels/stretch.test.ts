import { describe, expect, it } from "vitest";
import type { ChannelHistory, ChannelMessage } from "../contracts";
import { NOTHING, type Stretch, withMessage, withNewer, withNewest, withOlder } from "./stretch";

function message(seq: number, fields: Partial<ChannelMessage> = {}): ChannelMessage {
  return {
    id: `m${seq}`,
    channelId: "general",
    seq,
    revision: seq,
    threadId: null,
    authorKind: "user",
    authorId: "user",
    authorName: "User",
    body: `Message ${seq}`,
    mentions: [],
    workspaceId: null,
    run: null,
    taskId: null,
    editedAt: null,
    deletedAt: null,
    createdAt: "2026-05-01T10:00:00Z",
    ...fields,
  };
}

const page = (previousSeq: number | null, ...seqs: number[]): ChannelHistory => ({ items: seqs.map((seq) => message(seq)), previousSeq, revision: 99 });
const loaded = (previousSeq: number | null, ...seqs: number[]): Stretch => ({ items: seqs.map((seq) => message(seq)), previousSeq, hasNewer: false });
const seqs = ({ items }: Stretch) => items.map(({ seq }) => seq);

describe("the loaded part of a channel", () => {
  it("takes what is new at its place, though a change of it was told later than what follows it", () => {
    const after = [message(6), message(5, { revision: 7 })].reduce(withMessage, loaded(null, 4));

    expect(seqs(after)).toEqual([4, 5, 6]);
  });

  it("shows the newest of what it is told of a message, in whatever order", () => {
    const known = withMessage(loaded(null, 4), message(4, { revision: 9, body: "changed" }));

    expect(withMessage(known, message(4, { revision: 8, body: "older" }))).toBe(known);
    expect(known.items[0]?.body).toBe("changed");
    expect(withOlder(known, page(null, 3, 4)).items.map(({ body }) => body)).toEqual(["Message 3", "changed"]);
  });

  it("leaves to its pages what lies before it, and behind it where it is not the end", () => {
    expect(seqs(withMessage(loaded(10, 10, 11), message(3, { revision: 50 })))).toEqual([10, 11]);
    expect(seqs(withMessage({ ...loaded(10, 10, 11), hasNewer: true }, message(20)))).toEqual([10, 11]);
    expect(seqs(withMessage(NOTHING, message(1)))).toEqual([1]);
  });

  it("keeps what was read above the newest page where that continues it, and nothing where it does not", () => {
    const older = loaded(3, 3, 4, 5);

    expect(withNewest(older, page(5, 5, 6))).toMatchObject({ previousSeq: 3, hasNewer: false });
    expect(seqs(withNewest(older, page(6, 6, 7)))).toEqual([3, 4, 5, 6, 7]);
    expect(seqs(withNewest(older, page(8, 8, 9)))).toEqual([8, 9]);
    expect(seqs(withNewest({ ...older, hasNewer: true }, page(6, 6, 7)))).toEqual([6, 7]);
    expect(withNewest(older, page(null, 1, 2)).previousSeq).toBeNull();
  });

  it("is its end again once the last message of all is loaded", () => {
    const middle = { ...loaded(4, 4, 5), hasNewer: true };

    expect(withNewer(middle, page(6, 6, 7), 9).hasNewer).toBe(true);
    expect(withNewer(middle, page(6, 6, 7, 8, 9), 9)).toMatchObject({ hasNewer: false, previousSeq: 4 });
  });
});
