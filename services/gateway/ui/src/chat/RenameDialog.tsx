import { api } from "../api/client";
import { place, summaryOf } from "../app/queries";
import type { SessionSummary, SessionView } from "../contracts";
import { Rename } from "../editing/Rename";

/** Name a chat; later messages do not rename it. */
export function RenameDialog({ session, onClose }: { session: SessionSummary; onClose: () => void }) {
  return (
    <Rename<SessionView | SessionSummary>
      what="chat"
      of={{ name: session.title, revision: session.revision }}
      longest={200}
      field="session"
      nameIn={({ title }) => title}
      save={(title, revision) => api.patch<SessionView>(`/api/sessions/${session.id}`, { revision, title })}
      keep={(stored) => place(summaryOf(stored))}
      onClose={onClose}
    />
  );
}
