import { ApiError, api, request, sentence } from "../api/client";
import { keyHeaders } from "../api/key";
import { client, drop, place } from "../app/queries";
import type { SessionSummary } from "../contracts";
import { say } from "../ui/toasts";
import { forgetChat } from "./drafts";

export async function archive(session: SessionSummary, archived: boolean): Promise<void> {
  const change = (revision: number) =>
    api.patch<SessionSummary>(`/api/sessions/${session.id}`, { revision, archived });
  let stored: SessionSummary;
  try {
    stored = await change(session.revision);
  } catch (error) {
    // Somebody renamed it meanwhile: that takes nothing from this wish.
    if (!(error instanceof ApiError) || error.code !== "revision_conflict") throw error;
    stored = await change((error.body["session"] as SessionSummary).revision);
  }
  place(stored);
  say(archived ? `“${name(session)}” is archived.` : `“${name(session)}” is back in the list.`, {
    label: "Undo",
    run: () => void archive(stored, !archived).catch((error: unknown) => say(sentence(error))),
  });
}

export function name(session: SessionSummary): string {
  return session.title || "New chat";
}

const UNDO_MS = 8_000;
const leaving = new Map<string, () => void>();

/** Take a chat out of sight now and delete it when the time to undo is over, or the page is left. */
export function deleteSoon(session: SessionSummary): void {
  drop(session.id);
  const finish = (keepalive: boolean) => {
    clearTimeout(timer);
    leaving.delete(session.id);
    forgetChat(session.id);
    fetch(`/api/sessions/${session.id}`, { method: "DELETE", headers: keyHeaders(), keepalive })
      .then((response) => {
        if (response.ok || response.status === 404) return;
        say(`“${name(session)}” could not be deleted; it is in the list again.`);
        void client.invalidateQueries({ queryKey: ["sessions"] });
      })
      .catch(() => {
        say(`“${name(session)}” could not be deleted: popagent does not answer.`);
        void client.invalidateQueries({ queryKey: ["sessions"] });
      });
  };
  const timer = setTimeout(() => finish(false), UNDO_MS);
  leaving.set(session.id, () => finish(true));
  say(
    `“${name(session)}” is deleted.`,
    {
      label: "Undo",
      run: () => {
        clearTimeout(timer);
        leaving.delete(session.id);
        void client.invalidateQueries({ queryKey: ["sessions"] });
      },
    },
    UNDO_MS,
  );
}

/** Whether a chat is on its way out: lists loaded meanwhile still hold it. */
export function isLeaving(id: string): boolean {
  return leaving.has(id);
}

addEventListener("pagehide", () => {
  for (const finish of leaving.values()) finish();
});

/** Save a whole chat as a file. */
export async function download(session: SessionSummary, format: "markdown" | "json"): Promise<void> {
  const response = await request("GET", `/api/sessions/${session.id}/export?format=${format}`);
  const disposition = response.headers.get("content-disposition") ?? "";
  const encoded = /filename\*=UTF-8''([^;]+)/i.exec(disposition)?.[1];
  const plain = /filename="([^"]+)"/i.exec(disposition)?.[1];
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await response.blob());
  link.download = encoded ? decodeURIComponent(encoded) : (plain ?? `chat.${format === "json" ? "json" : "md"}`);
  link.click();
  // Firefox reads it a moment later.
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
