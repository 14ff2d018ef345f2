import { type ReactNode, useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { Icon, Logo } from "../ui/Icon";
import { Toasts } from "../ui/toasts";
import { HealthBanner } from "./HealthBanner";
import { PLACES, RailLinks, Tabs } from "./NavLinks";
import { Now } from "./Now";
import { KeyList, Palette } from "./Palette";
import { listenForKeys, spell, useCommands } from "./commands";

/** What one looks for by what it does, not by where it stands. */
const ERRANDS = [
  { path: "/tasks/new", title: "Give a task" },
  { path: "/schedules/new", title: "Make a schedule" },
  { path: "/channels/settings", title: "Change who answers in channels" },
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
  const [, navigate] = useLocation();
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
        <RailLinks />
        <Now />
      </nav>
      <div className="main-column">
        <HealthBanner />
        <div className="main-row">{children}</div>
      </div>
      <Tabs />
      <div id="spoken" className="sr" role="status" />
      <Toasts />
      {overlay === "palette" && <Palette onClose={() => setOverlay(null)} />}
      {overlay === "keys" && <KeyList onClose={() => setOverlay(null)} />}
    </div>
  );
}
