import { useQuery } from "@tanstack/react-query";
import { Fragment, memo } from "react";
import { ORCHESTRATOR, agentsQuery } from "../agents/queries";
import type { ChannelMessage } from "../contracts";
import { visible } from "../ui/visible";
import { Post, type PostActions } from "./Post";
import { type Unread, breaksOf, excerptOf } from "./words";

// Each has a connection of its own, of which a browser has few for one server.
const FOLLOWED = 2;

/** What was written, day by day. */
export const Log = memo(function Log({
  items,
  leaving,
  unread,
  isThread,
  actions,
}: {
  items: readonly ChannelMessage[];
  /** Those that are on their way out. */
  leaving: ReadonlySet<string>;
  unread: Unread | null;
  isThread: boolean;
  actions: PostActions;
}) {
  const agents = useQuery(agentsQuery).data?.items ?? [];
  const nameOf = (id: string) => agents.find((each) => each.id === id)?.name ?? (id === ORCHESTRATOR ? "The orchestrator" : id);
  const known = new Map(items.map((each) => [each.id, each]));
  const followed = new Set(items.filter((each) => each.run?.state === "running").slice(-FOLLOWED).map(({ id }) => id));
  const breaks = breaksOf(items, unread);
  const answered = (message: ChannelMessage): string | null => {
    if (isThread || message.threadId === null) return null;
    const asked = known.get(message.taskId ?? message.threadId) ?? known.get(message.threadId);
    return asked ? visible(excerptOf(asked)) : "an earlier message";
  };
  return items.map((message) => {
    const { day = null, isFirstNew = false } = breaks.get(message.id) ?? {};
    return (
      <Fragment key={message.id}>
        {day !== null && (
          <h2 className="day">
            <span>{day}</span>
          </h2>
        )}
        {isFirstNew && (
          <p className="day new-here">
            <span>New</span>
          </p>
        )}
        <Post
          message={message}
          by={nameOf(message.run?.agentId ?? ORCHESTRATOR)}
          answers={answered(message)}
          isFollowed={followed.has(message.id)}
          isGone={message.deletedAt !== null || leaving.has(message.id)}
          actions={actions}
        />
      </Fragment>
    );
  });
});
