import { type ReactNode, useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { Icon, type IconName, Logo } from "../ui/Icon";
import { Toasts } from "../ui/toasts";
import { HealthBanner } from "./HealthBanner";
import { Now } from "./Now";
import { KeyList, Palette } from "./Palette";
import { listenForKeys, spell, useCommands } from "./commands";

const PLACES: { path: string; label: string; icon: IconName; keys: string; group: string | null }[] = [
  { path: "/chat", label: "Chat", icon: "chat", keys: "g c", group: null },
  { path: "/agents", label: "Agents", icon: "agents", keys: "g a", group: "Company" },
  { path: "/observe", label: "Observe", icon: "observe", keys: "g o", group: "System" },
  { path: "/settings", label: "Settings", icon: "settings", keys: "g ,", group: null },
];

/** What one looks for by what it does, not by where it stands. */
const ERRANDS = [
  { path: "/settings/models", title: "Connect a model" },
  { path: "/settings/workspaces", title: "Register a workspace" },
  { path: "/settings/hooks", title: "See which hooks are asked" },
  { path: "/settings/runtime", title: "Change the settings of the runtime" },
  { path: "/agents/company", title: "See who is in the company" },
  { path: "/settings/page", title: "Switch light and dark" },
  { path: "/settings/health", title: "See how every service is" },
];

/** Rail, banner and overlays around every screen. */
export function Shell({ children }: { children: ReactNode }) {
  const [location, navigate] = useLocation();
  const [overlay, setOverlay] = useState<"palette" | "keys" | null>(null);
  useEffect(listenForKeys, []);
  useCommands([
    { id: "palette", title: "Go to or do", group: "Do", keys: "mod+k", inPalette: false, run: () => setOverlay("palette") },
    { id: "keys", title: "Show the keys", group: "Do", keys: "?", run: () => setOverlay("keys") },
    ...ERRANDS.map(({ path, title }) => ({ id: `do ${path}`, title, group: "Do" as const, run: () => navigate(path) })),
    ...PLACES.map(({ path, label, keys }) => ({
      id: `go ${path}`,
      title: label,
      group: "Go to" as const,
      keys,
      run: () => navigate(path),
    })),
  ]);
  const isHere = (path: string) => location === path || location.startsWith(`${path}/`);

  return (
    <div className="app">
      <nav className="rail" aria-label="Main">
        <Link href="/chat" className="brand" aria-label="popagent">
          <Logo />
          <span className="label">popagent</span>
        </Link>
        <button type="button" className="finder" title="Go to or do" onClick={() => setOverlay("palette")}>
          <Icon name="search" />
          <span className="label grow">Go to or do</span>
          <kbd aria-hidden="true">{spell("mod+k").replace("+", " ")}</kbd>
        </button>
        <div className="nav">
          {PLACES.map(({ path, label, icon, group }) => (
            <div key={path}>
              {group && <h2>{group}</h2>}
              <Link href={path} aria-current={isHere(path) ? "page" : undefined} title={label}>
                <Icon name={icon} />
                <span className="label">{label}</span>
              </Link>
            </div>
          ))}
        </div>
        <Now />
      </nav>
      <div className="main-column">
        <HealthBanner />
        <div className="main-row">{children}</div>
      </div>
      <nav className="tabs" aria-label="Main">
        {PLACES.map(({ path, label, icon }) => (
          <Link key={path} href={path} aria-current={isHere(path) ? "page" : undefined}>
            <Icon name={icon} />
            {label}
          </Link>
        ))}
      </nav>
      <div id="spoken" className="sr" role="status" />
      <Toasts />
      {overlay === "palette" && <Palette onClose={() => setOverlay(null)} />}
      {overlay === "keys" && <KeyList onClose={() => setOverlay(null)} />}
    </div>
  );
}
