import { Link, useLocation } from "wouter";
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
  { path: "/agents", label: "Agents", icon: "agents", keys: "g a", group: "Company" },
  { path: "/observe", label: "Observe", icon: "observe", keys: "g o", group: "System" },
  { path: "/settings", label: "Settings", icon: "settings", keys: "g ,", group: null },
];
const IN_TABS = PLACES.slice(0, 4);
const BEHIND = PLACES.slice(4);

function useCounts(): Record<string, { text: string; words: string; isWait: boolean }> {
  // A count may come later than what the screen asks for.
  const { needs, running, more } = useNeeds(useIdle());
  const waiting = `${needs.length}${more ? "+" : ""}`;
  return {
    ...(needs.length > 0 && { "/inbox": { text: waiting, words: `${waiting} waiting`, isWait: true } }),
    ...(running > 0 && { "/tasks": { text: `${running} running`, words: `${running} running`, isWait: false } }),
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
              {count && <span className={count.isWait ? "badge" : "label end xs faint"}>{count.text}</span>}
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
  return (
    <nav className="tabs" aria-label="Main">
      {IN_TABS.map(({ path, label, icon }) => (
        <Link key={path} href={path} aria-current={isHere(path) ? "page" : undefined}>
          <Icon name={icon} />
          {label}
          {counts[path]?.isWait && <span className="badge">{counts[path].text}</span>}
        </Link>
      ))}
      <Menu
        label="More"
        className={isBehind ? "is-here" : ""}
        items={BEHIND.map(({ path, label, icon }) => ({ label, icon, onSelect: () => navigate(path) }))}
      >
        <Icon name="menu" />
        More
      </Menu>
    </nav>
  );
}
