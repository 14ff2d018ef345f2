import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { api, query, sentence } from "../api/client";
import { attempt } from "../ui/attempt";
import { Icon } from "../ui/Icon";
import { useDebounced } from "../ui/useDebounced";
import { plural } from "../ui/words";
import { Marked } from "./Marked";
import type { ChatSession } from "./session";
import { show } from "./show";
import type { MessageHits } from "../contracts";

const MOST = 100;

/** Find words in this chat, in parts of it that are not loaded too. */
export function InChatSearch({
  session,
  onClose,
  onReveal,
}: {
  session: ChatSession;
  onClose: () => void;
  onReveal: () => void;
}) {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const q = useDebounced(typed.trim(), 200);
  const found = useQuery({
    queryKey: ["in-chat", session.id, q],
    queryFn: ({ signal }) => api.get<MessageHits>(`/api/sessions/${session.id}/search${query({ q, limit: MOST })}`, signal),
    enabled: q !== "",
    staleTime: 5_000,
  });
  const hits = found.data?.items ?? [];
  const go = async (index: number) => {
    const hit = hits[(index + hits.length) % hits.length];
    if (!hit) return;
    setAt((index + hits.length) % hits.length);
    await attempt(show(session, hit.messageId, onReveal));
  };
  return (
    <search className="in-chat">
      <div className="line">
        <Icon name="search" />
        <input
          className="grow"
          autoFocus
          type="search"
          aria-label="Search in this chat"
          placeholder="Search in this chat"
          value={typed}
          onChange={(event) => {
            setTyped(event.target.value);
            setAt(0);
          }}
          onKeyDown={(event) => {
            if (event.key === "Enter") void go(event.shiftKey ? at - 1 : at);
            else if (event.key === "ArrowDown") void go(at + 1);
            else if (event.key === "ArrowUp") void go(at - 1);
            else if (event.key === "Escape") onClose();
            else return;
            event.preventDefault();
            event.stopPropagation();
          }}
        />
        <span className="xs faint" role="status">
          {found.isError ? sentence(found.error) : q && found.data ? plural(hits.length, "message") : ""}
        </span>
        <button type="button" className="btn plain dense" onClick={onClose}>
          Close
        </button>
      </div>
      {hits.length > 0 && (
        <ul className="hits">
          {hits.map((hit, index) => (
            <li key={hit.messageId}>
              <button type="button" aria-current={index === at ? "true" : undefined} onClick={() => void go(index)}>
                <span className="xs faint">{hit.role === "user" ? "You" : "Orchestrator"}</span>
                <Marked text={hit.excerpt} words={q} />
              </button>
            </li>
          ))}
        </ul>
      )}
    </search>
  );
}
