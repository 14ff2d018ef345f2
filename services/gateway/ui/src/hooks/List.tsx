import { Link, useLocation } from "wouter";
import { useCommands } from "../app/commands";
import type { HookList, HookView } from "../contracts";
import { Switch } from "../editing/Switch";
import { insist } from "../editing/revisions";
import { Icon } from "../ui/Icon";
import { visible } from "../ui/visible";
import { Explained } from "./Explained";
import { useDrafts } from "./draftStore";
import { ALL_EVENTS, EVENTS, type HookEvent } from "./events";
import { NEW } from "./form";
import { keepHook } from "./queries";

/** Every hook by its event, in the order in which they run. */
export function List({ list }: { list: HookList }) {
  const [, navigate] = useLocation();
  const isBegun = useDrafts()[NEW] !== undefined;
  useCommands([{ id: "new hook", title: "New hook", group: "Do", keys: "n", run: () => navigate(`/settings/hooks/${NEW}`) }]);
  if (list.items.length === 0) return <Explained places={list} />;
  return (
    <>
      <div className="line wrap hooks-head">
        <p className="dim grow">Programs of yours that are asked before something happens, or told after it. A run uses them as they were when it began.</p>
        <Link href={`/settings/hooks/${NEW}`} className="btn primary">
          <Icon name="plus" />
          New hook
        </Link>
      </div>
      {isBegun && (
        <p className="small is-wait">
          A new one was begun and is <b>not saved</b>.
        </p>
      )}
      {ALL_EVENTS.map((event) => {
        const hooks = list.items.filter((hook) => hook.event === event);
        return hooks.length > 0 && <Of key={event} event={event} hooks={hooks} />;
      })}
    </>
  );
}

function Of({ event, hooks }: { event: HookEvent; hooks: HookView[] }) {
  const { title, when, refusal } = EVENTS[event];
  return (
    <section className="settings-group" aria-label={title}>
      <div>
        <div className="line wrap">
          <h2>{title}</h2>
          <span className="mono xs faint">{event}</span>
          <span className={`chip end ${refusal ? "wait" : ""}`}>{refusal ? "may refuse" : "is told"}</span>
        </div>
        <p className="small dim">{when}</p>
      </div>
      <ol className="card hooks">
        {hooks.map((hook) => (
          <Row key={hook.id} hook={hook} />
        ))}
      </ol>
    </section>
  );
}

function Row({ hook }: { hook: HookView }) {
  const isUnsaved = useDrafts()[hook.id] !== undefined;
  const { refusal, names } = EVENTS[hook.event];
  return (
    <li className={hook.enabled ? "" : "off"}>
      <Link href={`/settings/hooks/${hook.id}`} className="hook">
        <span className="mono xs faint hook-order" title="Its place among the hooks of this event">
          {hook.orderIndex}
        </span>
        <span className="section-name">
          <span className="line">
            <span className="strong cut">{visible(hook.name)}</span>
            {hook.hasSecret && <Icon name="key" className="faint" />}
            {isUnsaved && <b className="xs is-wait nowrap">not saved</b>}
          </span>
          <span className="xs faint cut mono">{whereOf(hook)}</span>
          <span className="xs dim cut">
            {names && (hook.matcher === "*" ? `all ${names}` : <span className="mono">{visible(hook.matcher)}</span>)}
            {names && refusal && " · "}
            {refusal && `if it fails: ${hook.onFailure === "block" ? "refuse" : "go on"}`}
          </span>
        </span>
      </Link>
      <Switch name={hook.name} isOn={hook.enabled} turn={(on) => turn(hook, on)} />
    </li>
  );
}

function whereOf(hook: HookView): string {
  return visible(hook.kind === "http" ? hook.url : hook.argv.join(" "));
}

async function turn(hook: HookView, enabled: boolean): Promise<void> {
  keepHook(await insist<HookView>(`/api/hooks/${hook.id}`, "hook", hook.revision, { enabled }));
}
