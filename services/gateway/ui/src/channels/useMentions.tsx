import { type KeyboardEvent, type ReactNode, type RefObject, type TextareaHTMLAttributes, useId, useLayoutEffect, useRef, useState } from "react";
import { initials } from "../ui/initials";
import type { AgentView } from "../contracts";
import { visible } from "../ui/visible";
import { begunAt, completed, meant } from "./mentions";

interface Mentions {
  list: ReactNode;
  attributes: TextareaHTMLAttributes<HTMLTextAreaElement>;
  onKey: (event: KeyboardEvent) => boolean;
  /** Begin a name where the caret is. */
  begin: () => void;
}

/** Makes a name whole that is begun with @: arrows choose, Enter and Tab take, Esc lets it be, and so does a finger. */
export function useMentions({
  field,
  text,
  agents,
  onText,
}: {
  field: RefObject<HTMLTextAreaElement | null>;
  text: string;
  agents: readonly AgentView[];
  onText: (text: string) => void;
}): Mentions {
  const id = useId();
  const [caret, setCaret] = useState(0);
  const [chosen, setChosen] = useState(0);
  // Where somebody wanted no name.
  const [leftAt, setLeftAt] = useState<number | null>(null);
  const wanted = useRef<number | null>(null);
  const begun = begunAt(text, caret);
  const found = begun && begun.at !== leftAt ? meant(begun.typed, agents) : [];
  const at = Math.min(chosen, found.length - 1);

  useLayoutEffect(() => {
    if (wanted.current === null) return;
    field.current?.focus();
    field.current?.setSelectionRange(wanted.current, wanted.current);
    setCaret(wanted.current);
    wanted.current = null;
  }, [text, field]);

  const look = ({ value, selectionStart: place }: HTMLTextAreaElement) => {
    if (place === caret) return;
    setCaret(place);
    setChosen(0);
    if (begunAt(value, place)?.at !== leftAt) setLeftAt(null);
  };
  const put = (changed: string, to: number) => {
    wanted.current = to;
    onText(changed);
  };
  const take = (agentId: string | undefined) => {
    if (!begun || agentId === undefined) return;
    const { text: whole, caret: to } = completed(text, begun, agentId);
    setChosen(0);
    put(whole, to);
  };
  const begin = () => {
    const here = field.current?.selectionEnd ?? text.length;
    const name = /[\w@./-]$/.test(text.slice(0, here)) ? " @" : "@";
    setLeftAt(null);
    put(text.slice(0, here) + name + text.slice(here), here + name.length);
  };
  const onKey = (event: KeyboardEvent): boolean => {
    if (found.length === 0 || event.nativeEvent.isComposing) return false;
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by !== undefined) setChosen((at + by + found.length) % found.length);
    else if ((event.key === "Enter" && !event.shiftKey && !event.ctrlKey && !event.metaKey) || (event.key === "Tab" && !event.shiftKey)) take(found[at]?.id);
    else if (event.key === "Escape") setLeftAt(begun?.at ?? null);
    else return false;
    return true;
  };

  return {
    begin,
    onKey,
    attributes: {
      "aria-autocomplete": "list",
      ...(found.length > 0 && { "aria-controls": id, "aria-activedescendant": `${id}-${at}` }),
      onInput: (event) => look(event.currentTarget),
      onSelect: (event) => look(event.currentTarget),
    },
    list: found.length > 0 && (
      <>
        <p className="sr" role="status">
          {found.length === 1 ? "One agent can be meant" : `${found.length} agents can be meant`}
        </p>
        <div id={id} role="listbox" aria-label="Agents that can be asked" className="mention-list">
          {found.map((agent, index) => (
            <div
              key={agent.id}
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === at}
              className="mention"
              ref={(row) => {
                if (index === at) row?.scrollIntoView({ block: "nearest" });
              }}
              // The field keeps the focus, and on a phone its keyboard.
              onPointerDown={(event) => event.preventDefault()}
              onPointerMove={() => setChosen(index)}
              onClick={() => take(agent.id)}
            >
              <span className="who" aria-hidden="true">
                {initials(agent.name)}
              </span>
              <b className="nowrap">{visible(agent.name)}</b>
              <span className="xs faint nowrap">@{agent.id}</span>
              <span className="xs faint cut grow not-phone">{about(agents, agent.id)}</span>
            </div>
          ))}
        </div>
      </>
    ),
  };
}

function about(agents: readonly AgentView[], id: string): string {
  return visible(agents.find((each) => each.id === id)?.delegationDescription ?? "");
}
