import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Link, useLocation } from "wouter";
import { useCommands } from "../app/commands";
import type { AgentFinding, AgentView, SkillView } from "../contracts";
import { Switch } from "../editing/Switch";
import { insist } from "../editing/revisions";
import { Loading } from "../settings/Loading";
import { Icon } from "../ui/Icon";
import { visible } from "../ui/visible";
import { plural } from "../ui/words";
import { Import } from "./Import";
import { NewSkill } from "./NewSkill";
import { SkillEditor } from "./SkillEditor";
import { draftOf, setDraft, useDrafts } from "./draftStore";
import { exportSkills } from "./exporting";
import { NEW } from "./form";
import { keepSkill, pathOf, skillsQuery } from "./queries";
import "./skills.css";

/** The skills of one agent: all of them, a new one, or the one whose id is `item`. */
export function Skills({ agent, item, findings }: { agent: AgentView; item: string | null; findings: AgentFinding[] }) {
  const skills = useQuery(skillsQuery(agent.id));
  const skill = skills.data?.find((each) => each.id === item);
  if (skill) return <SkillEditor key={skill.id} skill={skill} findings={findings.filter((each) => each.skillId === skill.id)} />;
  if (item === NEW) return <NewSkill agent={agent} />;
  return (
    <div className="scroll">
      <div className="settings-page">
        <Loading query={skills} what="the skills">
          {(items) => (item === null ? <List agent={agent} items={items} findings={findings} /> : <Gone agent={agent} id={item} />)}
        </Loading>
      </div>
    </div>
  );
}

function Gone({ agent, id }: { agent: AgentView; id: string }) {
  // There is nothing that it could be saved to.
  useEffect(() => setDraft(draftOf(agent.id, id), () => ({})), [agent.id, id]);
  return (
    <div className="empty">
      <h2>There is no such skill</h2>
      <p>It was deleted, or the address is wrong.</p>
      <Link href={`/agents/${agent.id}/skills`} className="btn">
        See all skills of {agent.name}
      </Link>
    </div>
  );
}

function List({ agent, items, findings }: { agent: AgentView; items: SkillView[]; findings: AgentFinding[] }) {
  const [isImporting, setImporting] = useState(false);
  const [, navigate] = useLocation();
  const isBegun = useDrafts()[draftOf(agent.id, NEW)] !== undefined;
  const isEmpty = items.length === 0;
  useCommands([{ id: "new skill", title: `New skill of ${agent.name}`, group: "Do", keys: "n", run: () => navigate(`/agents/${agent.id}/skills/${NEW}`) }]);
  return (
    <>
      {isEmpty ? (
        <div className="empty explained">
          <h2>{agent.name} has no skill yet.</h2>
          <p>
            A skill is a written procedure: how a log is read, how a release is made here. The agent sees its name and what it is for,
            and opens it when a task needs it. It gives no right and no tool.
          </p>
          <p>
            It has the form of the Agent Skills standard: a folder with a <code>SKILL.md</code>, and texts below <code>references/</code>{" "}
            that are read one by one. Those that lie in a repository, as below <code>.agents/skills</code>, can be imported.
          </p>
        </div>
      ) : (
        <p className="dim">Written procedures. {agent.name} sees the name and the description of those that are on, and opens one when a task needs it.</p>
      )}
      <div className="line wrap">
        <Link href={`/agents/${agent.id}/skills/${NEW}`} className="btn primary">
          <Icon name="plus" />
          {isBegun ? "Go on with the new skill" : "New skill"}
        </Link>
        <button type="button" className="btn" onClick={() => setImporting(true)}>
          <Icon name="folder" />
          Import
        </button>
        {!isEmpty && (
          <button type="button" className="btn plain" onClick={() => void exportSkills(items, `${agent.id}-skills`)}>
            <Icon name="download" />
            Export all
          </button>
        )}
      </div>
      {!isEmpty && (
        <ul className="card skills" aria-label={`Skills of ${agent.name}`}>
          {items.map((skill) => (
            <Row key={skill.id} skill={skill} findings={findings.filter((each) => each.skillId === skill.id)} />
          ))}
        </ul>
      )}
      {isImporting && <Import agent={agent} stored={items} onClose={() => setImporting(false)} />}
    </>
  );
}

function Row({ skill, findings }: { skill: SkillView; findings: AgentFinding[] }) {
  const isUnsaved = useDrafts()[draftOf(skill.agentId, skill.id)] !== undefined;
  const references = Object.keys(skill.references).length;
  const faults = findings.filter((each) => each.severity === "fault").length;
  return (
    <li className={skill.enabled ? "" : "off"}>
      <Link href={`/agents/${skill.agentId}/skills/${skill.id}`} className="skill">
        <span className="section-name">
          <span className="line">
            <span className="strong mono cut">{skill.name}</span>
            {skill.evolutionManaged && <span className="chip">learned</span>}
            {isUnsaved && <b className="xs is-wait nowrap">not saved</b>}
            {faults > 0 && <b className="xs is-fail nowrap">{plural(faults, "fault")}</b>}
          </span>
          <span className="xs dim skill-about">{visible(skill.description)}</span>
          {references > 0 && <span className="xs faint">{plural(references, "reference")}</span>}
        </span>
      </Link>
      <Switch name={skill.name} isOn={skill.enabled} turn={(on) => turn(skill, on)} />
    </li>
  );
}

async function turn(skill: SkillView, enabled: boolean): Promise<void> {
  keepSkill(await insist<SkillView>(pathOf(skill), "skill", skill.revision, { enabled }));
}
