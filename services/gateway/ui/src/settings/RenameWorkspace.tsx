import { api } from "../api/client";
import { client, workspacesQuery } from "../app/queries";
import type { WorkspaceRow, WorkspaceView } from "../contracts";
import { Rename } from "../editing/Rename";

/** Give a workspace another name; its folder stays where it is. */
export function RenameWorkspace({ workspace, onClose }: { workspace: WorkspaceRow; onClose: () => void }) {
  return (
    <Rename<WorkspaceView>
      what="workspace"
      of={workspace}
      longest={120}
      field="workspace"
      nameIn={({ name }) => name}
      save={(name, revision) => api.patch<WorkspaceView>(`/api/workspaces/${workspace.id}`, { revision, name })}
      keep={() => void client.invalidateQueries({ queryKey: workspacesQuery.queryKey })}
      onClose={onClose}
    />
  );
}
