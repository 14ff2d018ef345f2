import { Link, useLocation } from "wouter";
import { unreadWord, useUnread } from "../channels/list";
import { useNeeds } from "../tasks/lists";
import { Icon, type IconName } from "../ui/Icon";
import { Menu } from "../ui/Menu";
import { useIdle } from "../ui/useIdle";

export interface Place {
  path: string;
  label: string;
  icon: IconName;
  keys: string;
  group: string | null;
}

export const PLACES: readonly Place[] = [
  { path: "/inbox", label: "Needs you", icon: "inbox", keys: "g n", group: null },
  { path: "/chat", label: "Chat", icon: "chat", keys: "g c", group: null },
  { path: "/tasks", label: "Tasks", icon: "tasks", keys: "g t", group: null },
  { path: "/schedules", label: "Schedules", icon: "clock", keys: "g s", group: null },
  { path: "/channels", label: "Channels", icon: "channels", keys: "g h", group: null },
  { path: "/agents", label: "Agents", icon: "agents", keys: "g a", group: "Company" },
  { path: "/observe", label: "Observe", icon: "observe", keys: "g o", group: "System" },
  { path: "/settings", label: "Settings", icon: "settings", keys: "g ,", group: null },
];
const IN_TABS = PLACES.slice(0, 4);
const BEHIND = PLACES.slice(4);

interface Count {
  text: string;
  words: string;
  /** The look of what is more than a word. */
  badge: "badge" | "badge quiet" | null;
}

function useCounts(): Record<string, Count> {
  // A count may come later than what the screen asks for.
  const isIdle = useIdle();
  const { needs, running, more } = useNeeds(isIdle);
  const waiting = `${needs.length}${more ? "+" : ""}`;
  const unread = useUnread(isIdle);
  return {
    ...(needs.length > 0 && { "/inbox": { text: waiting, words: `${waiting} waiting`, badge: "badge" } }),
    ...(running > 0 && { "/tasks": { text: `${running} running`, words: `${running} running`, badge: null } }),
    ...(unread > 0 && { "/channels": { text: unreadWord(unread), words: `${unreadWord(unread)} unread`, badge: "badge quiet" } }),
  };
}

function useIsHere(): (path: string) => boolean {
  const [location] = useLocation();
  return (path) => location === path || location.startsWith(`${path}/`);
}

/** The places of the rail. */
export function RailLinks() {
  const isHere = useIsHere();
  const counts = useCounts();
  return (
    <div className="nav">
      {PLACES.map(({ path, label, icon, group }) => {
        const count = counts[path];
        return (
          <div key={path}>
            {group && <h2>{group}</h2>}
            <Link href={path} aria-current={isHere(path) ? "page" : undefined} title={count ? `${label}: ${count.words}` : label}>
              <Icon name={icon} />
              <span className="label">{label}</span>
              {count && <span className={count.badge ?? "label end xs faint"}>{count.text}</span>}
            </Link>
          </div>
        );
      })}
    </div>
  );
}

/** The same on a phone: what is needed daily, and the rest behind one more. */
export function Tabs() {
  const [, navigate] = useLocation();
  const isHere = useIsHere();
  const counts = useCounts();
  const isBehind = BEHIND.some(({ path }) => isHere(path));
  const hidden = BEHIND.map(({ path }) => counts[path]).find((count) => count?.badge);
  return (
    <nav className="tabs" aria-label="Main">
      {IN_TABS.map(({ path, label, icon }) => (
        <Link key={path} href={path} aria-current={isHere(path) ? "page" : undefined}>
          <Icon name={icon} />
          {label}
          {counts[path]?.badge && <span className={counts[path].badge}>{counts[path].text}</span>}
        </Link>
      ))}
      <Menu
        label={hidden ? `More ${hidden.words}` : "More"}
        className={isBehind ? "is-here" : ""}
        items={BEHIND.map(({ path, label, icon }) => ({
          label: counts[path] ? `${label}: ${counts[path].words}` : label,
          icon,
          onSelect: () => navigate(path),
        }))}
      >
        <Icon name="menu" />
        {hidden ? "More " : "More"}
        {hidden?.badge && <span className={hidden.badge}>{hidden.text}</span>}
      </Menu>
    </nav>
  );
}
