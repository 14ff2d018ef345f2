import { useQuery } from "@tanstack/react-query";
import { useRef } from "react";
import { ORCHESTRATOR, agentsQuery, takesWork } from "../agents/queries";
import { WorkspaceChoice } from "../chat/Composer";
import { WritingBox } from "../chat/WritingBox";
import { Icon } from "../ui/Icon";
import { visible } from "../ui/visible";
import { channelSettingsQuery } from "./list";
import { mentioned } from "./mentions";
import { useMentions } from "./useMentions";

const LONGEST = 40_000;

/** Where a post is written; it says who is asked before anything is sent. */
export function Writing({
  label,
  placeholder,
  text,
  workspaceId,
  onText,
  onWorkspace,
  onSend,
}: {
  label: string;
  placeholder: string;
  text: string;
  workspaceId: string | null;
  onText: (text: string) => void;
  onWorkspace: (id: string) => void;
  /** Told whether an agent is asked. */
  onSend: (asks: boolean) => void;
}) {
  const field = useRef<HTMLTextAreaElement>(null);
  const agents = useQuery(agentsQuery).data?.items.filter(takesWork) ?? [];
  const settings = useQuery(channelSettingsQuery).data;
  const { list, attributes, onKey, begin } = useMentions({ field, text, agents, onText });
  const asked = mentioned(text, agents)[0] ?? (settings?.autoReply ? (settings.agentId ?? ORCHESTRATOR) : null);
  const name = agents.find(({ id }) => id === asked)?.name ?? asked;
  return (
    <WritingBox
      field={field}
      label={label}
      placeholder={placeholder}
      text={text}
      longest={LONGEST}
      canSend
      onText={onText}
      onSend={() => onSend(asked !== null)}
      onKey={onKey}
      attributes={attributes}
      above={list}
    >
      <button type="button" className="choice nowrap" title="Name an agent that answers" onClick={begin}>
        <Icon name="agents" />
        {name === null ? "Ask an agent" : <span className="cut">{`Asks ${visible(name)}`}</span>}
      </button>
      {name !== null && <WorkspaceChoice id={workspaceId} note="The files that the answer works with" onChoose={onWorkspace} />}
    </WritingBox>
  );
}
