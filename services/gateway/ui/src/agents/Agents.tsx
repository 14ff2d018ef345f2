import { useQuery } from "@tanstack/react-query";
import { Link, Redirect } from "wouter";
import type { AgentFinding, AgentView } from "../contracts";
import { Loading } from "../settings/Loading";
import { Skills } from "../skills/Skills";
import { useDrafts as useSkillDrafts } from "../skills/draftStore";
import { Icon } from "../ui/Icon";
import { PHONE, useMedia } from "../ui/media";
import { useTitle } from "../ui/useTitle";
import { plural } from "../ui/words";
import { Company } from "./Company";
import { Editor } from "./Editor";
import { useDrafts } from "./draftStore";
import { initials } from "../ui/initials";
import { ORCHESTRATOR, agentHealthQuery, agentsQuery } from "./queries";
import "../settings/settings.css";
import "./agents.css";

const COMPANY = "company";
const SKILLS = "skills";

/**
 * Who the agents are. In the address after /agents stands an agent's id, or the company; behind that `skills`, and the id
 * of one of them.
 */
export default function Agents({ place, part, item }: { place: string | null; part: string | null; item: string | null }) {
  const isPhone = useMedia(PHONE);
  const agents = useQuery(agentsQuery);
  const health = useQuery(agentHealthQuery);
  const shown = agents.data?.items.find((agent) => agent.id === place);
  useTitle(shown ? `${part === SKILLS ? "Skills of " : ""}${shown.name}, Agents` : place === COMPANY ? "Company" : "Agents");
  if (place === null && !isPhone) return <Redirect to={`/agents/${ORCHESTRATOR}`} replace />;

  const findings = health.data?.findings ?? [];
  const list = (
    <nav aria-label="Agents" className="sections-nav">
      <header className="bar">
        <h1 className="grow">Agents</h1>
        <Link href={`/agents/${COMPANY}`} className="btn plain dense" aria-current={place === COMPANY ? "page" : undefined}>
          Company
        </Link>
      </header>
      <div className="scroll">
        <Loading query={agents} what="the agents">
          {({ items }) => (
            <ul className="sections">
              {items.map((agent) => (
                <Row key={agent.id} agent={agent} isHere={agent.id === place} findings={findings.filter((each) => each.agentId === agent.id)} />
              ))}
            </ul>
          )}
        </Loading>
      </div>
      <Checked findings={findings} isKnown={health.data !== undefined} isBusy={health.isFetching} again={() => void health.refetch()} />
    </nav>
  );
  // On a phone the list is a page of its own.
  if (place === null) return <main className="pane">{list}</main>;

  return (
    <>
      <div className="pane not-phone">{list}</div>
      <main className="main settings">
        <header className="bar">
          {shown && item !== null ? (
            <Link href={`/agents/${shown.id}/${SKILLS}`} className="btn plain square" aria-label={`All skills of ${shown.name}`}>
              <Icon name="left" />
            </Link>
          ) : (
            <Link href="/agents" className="btn plain square only-phone" aria-label="All agents">
              <Icon name="left" />
            </Link>
          )}
          <h1 className="cut">{place === COMPANY ? "Company" : (shown?.name ?? "Agent")}</h1>
          {shown && <span className="chip mono not-phone">{shown.id}</span>}
          {shown && <Parts agent={shown} part={part} />}
        </header>
        {place === COMPANY ? (
          <Company />
        ) : shown && part === SKILLS ? (
          <Skills key={shown.id} agent={shown} item={item} findings={findings.filter((each) => each.agentId === shown.id)} />
        ) : shown && part !== null ? (
          <Redirect to={`/agents/${shown.id}`} replace />
        ) : shown && agents.data ? (
          <Editor key={shown.id} stored={shown} tools={agents.data.tools} findings={findings.filter((each) => each.agentId === shown.id && each.skillId === null)} />
        ) : (
          <Loading query={agents} what="the agent">
            {() => (
              <div className="empty">
                <h2>There is no agent “{place}”</h2>
                <Link href="/agents" className="btn">
                  See all agents
                </Link>
              </div>
            )}
          </Loading>
        )}
      </main>
    </>
  );
}

/** What there is of an agent. */
function Parts({ agent, part }: { agent: AgentView; part: string | null }) {
  const here = (is: boolean) => (is ? { "aria-current": "page" as const } : {});
  return (
    <nav className="segments end" aria-label={`Parts of ${agent.name}`}>
      <Link href={`/agents/${agent.id}`} {...here(part === null)}>
        Profile
      </Link>
      <Link href={`/agents/${agent.id}/${SKILLS}`} {...here(part === SKILLS)}>
        Skills
      </Link>
    </nav>
  );
}

function Row({ agent, isHere, findings }: { agent: AgentView; isHere: boolean; findings: AgentFinding[] }) {
  const isUnsaved = [useDrafts()[agent.id] !== undefined, ...Object.keys(useSkillDrafts()).map((id) => id.startsWith(`${agent.id}/`))].includes(true);
  const faults = findings.filter((each) => each.severity === "fault").length;
  return (
    <li>
      <Link href={`/agents/${agent.id}`} className="row" aria-current={isHere ? "page" : undefined}>
        <span className="monogram" aria-hidden="true">
          {initials(agent.name)}
        </span>
        <span className="section-name">
          <span className="cut">{agent.name}</span>
          <span className="xs faint cut">
            {isUnsaved ? (
              <b className="is-wait">not saved</b>
            ) : faults > 0 ? (
              <b className="is-fail">{plural(faults, "fault")}</b>
            ) : (
              about(agent)
            )}
          </span>
        </span>
        <Icon name="right" className="only-phone faint" />
      </Link>
    </li>
  );
}

function about(agent: AgentView): string {
  if (agent.id === ORCHESTRATOR) return "talks to you";
  if (!agent.delegable) return "not to be delegated to";
  return { none: "sees no files", "read-only": "reads files", "read-write": "reads and writes files" }[agent.workspaceAccess];
}

/** What the check of all profiles found, and how to make it again. */
function Checked({ findings, isKnown, isBusy, again }: { findings: AgentFinding[]; isKnown: boolean; isBusy: boolean; again: () => void }) {
  const faults = findings.filter((each) => each.severity === "fault").length;
  const homeless = findings.filter((each) => each.code === "orchestrator_missing");
  return (
    <footer className="checked small">
      {homeless.map((each) => (
        <p key={each.code} className="is-fail" role="alert">
          {each.message} {each.fix}
        </p>
      ))}
      <span className="line">
        <span role="status" className={faults > 0 ? "is-fail" : "dim"}>
          {isKnown ? (faults > 0 ? plural(faults, "fault") : "No faults") : "Not checked yet"}
        </span>
        <button type="button" className="btn plain dense end" disabled={isBusy} onClick={again}>
          {isBusy ? "Checking…" : "Check"}
        </button>
      </span>
    </footer>
  );
}
