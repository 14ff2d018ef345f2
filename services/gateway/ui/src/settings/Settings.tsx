import { type ComponentType, Suspense, lazy } from "react";
import { Link, Redirect } from "wouter";
import { Icon, type IconName } from "../ui/Icon";
import { PHONE, useMedia } from "../ui/media";
import { useTitle } from "../ui/useTitle";
import { visible } from "../ui/visible";
import { useDrafts as useHookDrafts } from "../hooks/draftStore";
import { useHookTitle } from "../hooks/useHookTitle";
import { Health } from "./Health";
import { Key } from "./Key";
import { Models } from "./Models";
import { Page } from "./Page";
import { Runtime } from "./Runtime";
import { Workspaces } from "./Workspaces";
import { useDraft } from "./draftStore";
import "./settings.css";

// It is as large as the others together.
const Hooks = lazy(() => import("../hooks/Hooks"));

interface Section {
  id: string;
  title: string;
  about: string;
  icon: IconName;
  screen: ComponentType<{ item: string | null }>;
}

const SECTIONS: readonly Section[] = [
  { id: "models", title: "Models", about: "Which one answers", icon: "model", screen: Models },
  { id: "runtime", title: "Runtime", about: "Steps, tools, texts", icon: "settings", screen: Runtime },
  { id: "workspaces", title: "Workspaces", about: "Folders that agents work in", icon: "folder", screen: Workspaces },
  { id: "hooks", title: "Hooks", about: "Programs that are asked first", icon: "hook", screen: Hooks },
  { id: "key", title: "Key", about: "Kept in this browser", icon: "key", screen: Key },
  { id: "page", title: "Page", about: "Light or dark, single keys", icon: "sun", screen: Page },
  { id: "health", title: "Health", about: "Every service and check", icon: "observe", screen: Health },
];

/** Everything a person can change; `section` is the part of the address after /settings, `item` the one after that. */
export default function Settings({ section, item }: { section: string | null; item: string | null }) {
  const isPhone = useMedia(PHONE);
  const unsaved: Record<string, boolean> = {
    runtime: Object.keys(useDraft()).length > 0,
    hooks: Object.keys(useHookDrafts()).length > 0,
  };
  const shown = SECTIONS.find((each) => each.id === section);
  const hookTitle = useHookTitle(section === "hooks" ? item : null);
  const title = hookTitle ?? shown?.title;
  useTitle(title ? `${title}, Settings` : "Settings");
  if (!shown && (section !== null || !isPhone)) return <Redirect to={isPhone ? "/settings" : "/settings/models"} replace />;
  const Screen = shown?.screen;

  const list = (
    <nav aria-label="Settings" className="sections-nav">
      <header className="bar">
        <h1>Settings</h1>
      </header>
      <ul className="scroll sections">
        {SECTIONS.map(({ id, title, about, icon }) => (
          <li key={id}>
            <Link href={`/settings/${id}`} className="row" aria-current={id === shown?.id ? "page" : undefined}>
              <Icon name={icon} />
              <span className="section-name">
                <span>{title}</span>
                <span className="xs faint cut">{unsaved[id] ? <b className="is-wait">not saved</b> : about}</span>
              </span>
              <Icon name="right" className="only-phone faint" />
            </Link>
          </li>
        ))}
      </ul>
    </nav>
  );
  // On a phone the list is a page of its own.
  if (!shown || !Screen) return <main className="pane">{list}</main>;

  return (
    <>
      <div className="pane not-phone">{list}</div>
      <main className="main settings">
        <header className="bar">
          {item === null ? (
            <Link href="/settings" className="btn plain square only-phone" aria-label="All settings">
              <Icon name="left" />
            </Link>
          ) : (
            <Link href={`/settings/${shown.id}`} className="btn plain square" aria-label={`All ${shown.title.toLowerCase()}`}>
              <Icon name="left" />
            </Link>
          )}
          <h1 className="cut">{visible(title ?? shown.title)}</h1>
        </header>
        <Suspense fallback={null}>
          <Screen key={shown.id} item={item} />
        </Suspense>
      </main>
    </>
  );
}
