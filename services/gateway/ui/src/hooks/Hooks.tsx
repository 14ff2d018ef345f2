import { useQuery } from "@tanstack/react-query";
import { useEffect } from "react";
import { Link } from "wouter";
import { Loading } from "../settings/Loading";
import { HookEditor } from "./HookEditor";
import { List } from "./List";
import { NewHook } from "./NewHook";
import { setDraft } from "./draftStore";
import { NEW } from "./form";
import { hooksQuery } from "./queries";
import "./hooks.css";

/** All hooks, a new one, or the one whose id is `item`. */
export default function Hooks({ item }: { item: string | null }) {
  const hooks = useQuery(hooksQuery);
  const hook = hooks.data?.items.find((each) => each.id === item);
  if (hook && hooks.data) return <HookEditor key={hook.id} hook={hook} places={hooks.data} />;
  if (item === NEW && hooks.data) return <NewHook places={hooks.data} />;
  return (
    <div className="scroll">
      <div className="settings-page">
        <Loading query={hooks} what="the hooks">
          {(list) => (item === null ? <List list={list} /> : <Gone id={item} />)}
        </Loading>
      </div>
    </div>
  );
}

function Gone({ id }: { id: string }) {
  // There is nothing that it could be saved to.
  useEffect(() => setDraft(id, () => ({})), [id]);
  return (
    <div className="empty">
      <h2>There is no such hook</h2>
      <p>It was deleted, or the address is wrong. What it did stays in the chats.</p>
      <Link href="/settings/hooks" className="btn">
        See all hooks
      </Link>
    </div>
  );
}
