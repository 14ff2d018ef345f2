import { useCallback, useEffect, useMemo, useState } from "react";
import { useLocation } from "wouter";
import { useCommands } from "../app/commands";
import { PHONE, useMedia } from "../ui/media";
import "./chat.css";
import { Conversation } from "./Conversation";
import { SessionList } from "./SessionList";
import { lastChat } from "./lastChat";
import { loadMarkdownWhenIdle } from "./loadMarkdown";
import { chatSession } from "./openChats";

/** The list of chats beside the open one; `id` null opens the last one, "new" is one that has no words yet. */
export function ChatScreen({ id }: { id: string | null }) {
  const [, navigate] = useLocation();
  // The id of the next new chat is made here, so that sending twice cannot make two.
  const [freshId, setFreshId] = useState(() => crypto.randomUUID() as string);
  const isPhone = useMedia(PHONE);
  const isNew = id === "new";
  const sessionId = isNew ? freshId : id;
  const session = useMemo(() => (sessionId ? chatSession(sessionId, isNew) : null), [sessionId, isNew]);

  useEffect(() => {
    // On a phone the list is a page of its own.
    if (id === null && !isPhone) navigate(`/chat/${lastChat() ?? "new"}${location.search}`, { replace: true });
  }, [id, isPhone, navigate]);

  const [isListHidden, setListHidden] = useState(false);
  useCommands([
    {
      id: "chat list",
      title: isListHidden ? "Show the list of chats" : "Hide the list of chats",
      group: "Do",
      keys: "[",
      run: () => setListHidden(!isListHidden),
    },
  ]);

  // After the composer can be used, and before an answer needs it.
  useEffect(loadMarkdownWhenIdle, []);

  const onBegun = useCallback(() => {
    navigate(`/chat/${freshId}${location.search}`, { replace: true });
    setFreshId(crypto.randomUUID());
  }, [freshId, navigate]);

  return (
    <>
      {!isListHidden && <SessionList openId={isNew ? "new" : id} />}
      {session && <Conversation key={session.id} session={session} isNew={isNew} onBegun={onBegun} />}
    </>
  );
}
