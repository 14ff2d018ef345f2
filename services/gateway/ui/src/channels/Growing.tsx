import { useQuery } from "@tanstack/react-query";
import { ORCHESTRATOR } from "../agents/queries";
import { Elapsed } from "../chat/Elapsed";
import { Prose } from "../chat/Prose";
import type { ChannelRun } from "../contracts";
import { transcriptQuery } from "../tasks/queries";
import { useFollowed } from "../tasks/useFollowed";
import { visible } from "../ui/visible";
import { doingOf } from "./growing";

/** The answer to a post while that runs: what was said of it so far, or what is done for it. */
export function Growing({ run: { taskId, agentId }, by }: { run: ChannelRun; by: string }) {
  const said = useQuery(transcriptQuery(taskId));
  useFollowed({ id: taskId, state: "running" }, said.data !== undefined);
  if (!said.data) return null;
  const { text, act } = doingOf(said.data, agentId ?? ORCHESTRATOR);
  if (!text && !act) return null;
  return (
    <div className="post-growing" role="group" aria-label={`${by} works on it`}>
      {text ? (
        <Prose text={text} isGrowing />
      ) : (
        <p className="small dim">
          {visible(act)}… <Elapsed key={act} />
        </p>
      )}
    </div>
  );
}
