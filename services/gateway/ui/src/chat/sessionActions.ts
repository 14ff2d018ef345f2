import { request } from "../api/client";
import { client, drop, leaving, nameOf, place, summaryOf } from "../app/queries";
import type { SessionSummary, SessionView } from "../contracts";
import { deleteSoon } from "../editing/deleteSoon";
import { insist } from "../editing/revisions";
import { attempt } from "../ui/attempt";
import { saveFile } from "../ui/saveFile";
import { say } from "../ui/toasts";
import { forgetChat } from "./drafts";
import { lastChat, setLastChat } from "./lastChat";

export async function archive(session: SessionSummary, archived: boolean): Promise<void> {
  const changed = summaryOf(await insist<SessionView>(`/api/sessions/${session.id}`, "session", session.revision, { archived }));
  place(changed);
  say(archived ? `“${nameOf(session)}” is archived.` : `“${nameOf(session)}” is back in the list.`, {
    label: "Undo",
    run: () => void attempt(archive(changed, !archived)),
  });
}

/** Take a chat out of sight now and delete it when the time to undo is over, or the page is left. */
export function deleteChat(session: SessionSummary): void {
  const { id } = session;
  leaving.add(id);
  drop(id);
  if (lastChat() === id) setLastChat(null);
  deleteSoon({
    path: `/api/sessions/${id}`,
    name: nameOf(session),
    back: () => {
      leaving.delete(id);
      void client.invalidateQueries({ queryKey: ["sessions"] });
    },
    gone: () => forgetChat(id),
  });
}

/** Save a whole chat as a file. */
export async function download(session: SessionSummary, format: "markdown" | "json"): Promise<void> {
  const response = await request("GET", `/api/sessions/${session.id}/export?format=${format}`);
  const disposition = response.headers.get("content-disposition") ?? "";
  const encoded = /filename\*=UTF-8''([^;]+)/i.exec(disposition)?.[1];
  const plain = /filename="([^"]+)"/i.exec(disposition)?.[1];
  saveFile(await response.blob(), encoded ? decodeURIComponent(encoded) : (plain ?? `chat.${format === "json" ? "json" : "md"}`));
}
