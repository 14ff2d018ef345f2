import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { Link, Redirect } from "wouter";
import { loadMarkdownWhenIdle } from "../chat/loadMarkdown";
import type { ChannelView } from "../contracts";
import { Loading } from "../settings/Loading";
import { Icon } from "../ui/Icon";
import { PHONE, useMedia } from "../ui/media";
import { visible } from "../ui/visible";
import { ChannelScreen } from "./ChannelScreen";
import { Settings } from "./Settings";
import { channelsQuery, unreadWord } from "./list";
import "../settings/settings.css";
import "../tasks/tasks.css";
import "./channels.css";

const SETTINGS = "settings";

/** The channels: the one whose id is `id`, all of it or the thread of a message; or what posts start. */
export default function Channels({ id, thread }: { id: string | null; thread: string | null }) {
  const channels = useQuery(channelsQuery);
  const isPhone = useMedia(PHONE);
  useEffect(loadMarkdownWhenIdle, []);
  if (id === SETTINGS) return <Settings />;
  const items = channels.data?.items ?? [];
  const [first, ...others] = items;
  const shown = items.find((each) => each.id === id);
  const isOnly = first !== undefined && others.length === 0;
  // On a phone the list is a page of its own; one channel needs no list.
  if (id === null && first && (isOnly || !isPhone)) return <Redirect to={`/channels/${first.id}`} replace />;

  return (
    <>
      {!isOnly && items.length > 0 && <Pane items={items} openId={id} />}
      {shown ? (
        <ChannelScreen key={`${shown.id} ${thread}`} channel={shown} threadId={thread} />
      ) : id === null && first ? null : (
        <main className="main">
          <Loading query={channels} what="the channels">
            {() => (
              <div className="empty">
                <h2>There is no such channel</h2>
                <p>The address may be wrong.</p>
                <Link href="/channels" className="btn">
                  Open the channels
                </Link>
              </div>
            )}
          </Loading>
        </main>
      )}
    </>
  );
}

function Pane({ items, openId }: { items: ChannelView[]; openId: string | null }) {
  return (
    <aside className={`pane channel-pane ${openId === null ? "" : "not-phone"}`} aria-label="Channels">
      <header className="bar">
        <h1>Channels</h1>
      </header>
      <ul className="scroll sections">
        {items.map((channel) => (
          <li key={channel.id}>
            <Link href={`/channels/${channel.id}`} className="row" aria-current={channel.id === openId ? "page" : undefined}>
              <Icon name="channels" />
              <span className={`cut grow ${channel.unread > 0 ? "strong" : ""}`}>{visible(channel.title.replace(/^#/, ""))}</span>
              {channel.unread > 0 && (
                <span className="badge quiet">
                  {unreadWord(channel.unread)}
                  <span className="sr"> unread</span>
                </span>
              )}
            </Link>
          </li>
        ))}
      </ul>
    </aside>
  );
}
