import { useInfiniteQuery } from "@tanstack/react-query";
import { type KeyboardEvent, useId, useMemo, useState } from "react";
import { useLocation } from "wouter";
import { Dialog } from "../ui/Dialog";
import { useDebounced } from "../ui/useDebounced";
import { Icon } from "../ui/Icon";
import { type Command, spell, useAllCommands } from "./commands";
import { nameOf, sessionsQuery } from "./queries";

const SHOWN = 12;
const CHATS_SHOWN = 8;
const SEARCH_MS = 150;

/** How well `text` answers `typed`: 0 not at all, more for earlier and denser matches of its letters in order. */
export function score(text: string, typed: string): number {
  const hay = text.toLowerCase();
  const needle = typed.toLowerCase().trim();
  if (!needle) return 1;
  const at = hay.indexOf(needle);
  if (at >= 0) return 1_000 - at + (at === 0 || hay[at - 1] === " " ? 500 : 0);
  let from = 0;
  let gaps = 0;
  for (const letter of needle.replaceAll(" ", "")) {
    const next = hay.indexOf(letter, from);
    if (next < 0) return 0;
    gaps += next - from;
    from = next + 1;
  }
  // Letters that lie far apart are a coincidence.
  return gaps <= needle.length ? 400 - gaps * 5 : 0;
}

interface Entry {
  id: string;
  title: string;
  group: string;
  keys?: string | undefined;
  run: () => void;
}

/** Go to, do, or find a chat: one field for all of it. `>` in front shows only what can be done. */
export function Palette({ onClose }: { onClose: () => void }) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const [, navigate] = useLocation();
  const commands = useAllCommands();
  const onlyActions = typed.startsWith(">");
  const words = (onlyActions ? typed.slice(1) : typed).trim();
  const q = useDebounced(words, SEARCH_MS);
  const chats = useInfiniteQuery({
    ...sessionsQuery({ q, workspaceId: null, archived: false }),
    enabled: !onlyActions,
    placeholderData: (before) => before,
  });
  const id = useId();

  const entries = useMemo<Entry[]>(() => {
    const known = new Map<string, Command>();
    for (const command of commands) if (command.inPalette !== false) known.set(command.id, command);
    const matching = [...known.values()]
      .filter((command) => !onlyActions || command.group === "Do")
      .map((command) => ({ command, rank: score(command.title, words) }))
      .filter(({ rank }) => rank > 0)
      .sort((a, b) => b.rank - a.rank)
      .slice(0, SHOWN)
      .map(({ command }) => command);
    // The best one first, and each group once.
    const groups = [...new Set(matching.map((command) => command.group))];
    matching.sort((a, b) => groups.indexOf(a.group) - groups.indexOf(b.group));
    const found = onlyActions
      ? []
      : (chats.data?.pages[0]?.items ?? []).slice(0, CHATS_SHOWN).map((chat) => ({
          id: `chat ${chat.id}`,
          title: nameOf(chat),
          group: words ? "Chats" : "Recent chats",
          run: () => navigate(`/chat/${chat.id}`),
        }));
    return [...matching, ...found];
  }, [commands, words, onlyActions, chats.data, navigate]);

  const chosen = Math.min(at, entries.length - 1);
  const run = (entry: Entry | undefined) => {
    if (!entry) return;
    onClose();
    entry.run();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") setAt((chosen + 1) % Math.max(1, entries.length));
    else if (event.key === "ArrowUp") setAt((chosen - 1 + entries.length) % Math.max(1, entries.length));
    else if (event.key === "Enter" && !event.nativeEvent.isComposing) run(entries[chosen]);
    else return;
    event.preventDefault();
  };

  return (
    <Dialog label="Go to or do" className="palette" onClose={onClose}>
      <div className="palette-head">
        <Icon name="search" />
        <input
          autoFocus
          role="combobox"
          aria-expanded="true"
          aria-controls={id}
          aria-activedescendant={entries[chosen] ? `${id}-${chosen}` : undefined}
          aria-label="Go to or do"
          placeholder="Go to, do, or find a chat"
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value);
            setAt(0);
          }}
          onKeyDown={onKeyDown}
        />
        <kbd>Esc</kbd>
      </div>
      <div id={id} role="listbox" aria-label="Results" className="palette-list">
        {entries.map((entry, index) => (
          <div key={entry.id} role="presentation">
            {entry.group !== entries[index - 1]?.group && <div className="group">{entry.group}</div>}
            <div
              id={`${id}-${index}`}
              role="option"
              aria-selected={index === chosen}
              className="palette-row"
              ref={(row) => {
                if (index === chosen) row?.scrollIntoView({ block: "nearest" });
              }}
              onPointerMove={() => setAt(index)}
              onClick={() => run(entry)}
            >
              <span className="cut grow">{entry.title}</span>
              {entry.keys && <kbd>{spell(entry.keys)}</kbd>}
            </div>
          </div>
        ))}
        {entries.length === 0 && <p className="palette-none">Nothing is called that. Try fewer letters.</p>}
      </div>
    </Dialog>
  );
}

/** Every key that works now. */
export function KeyList({ onClose }: { onClose: () => void }) {
  const commands = useAllCommands().filter((command) => command.keys);
  const known = [...new Map(commands.map((command) => [command.keys, command])).values()];
  return (
    <Dialog label="Keys" onClose={onClose}>
      <div className="inside">
        <h2>Keys</h2>
        <dl className="keys">
          {known.map((command) => (
            <div key={command.id}>
              <dt>{command.title}</dt>
              <dd>
                <kbd>{spell(command.keys ?? "")}</kbd>
              </dd>
            </div>
          ))}
        </dl>
        <p className="faint small">Letters do nothing while you write. They can be switched off in Settings, Page.</p>
        <div className="actions">
          <button type="button" className="btn" onClick={onClose} autoFocus>
            Close
          </button>
        </div>
      </div>
    </Dialog>
  );
}
