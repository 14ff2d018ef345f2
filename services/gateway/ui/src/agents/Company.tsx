import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { CompanyView } from "../contracts";
import { Loading } from "../settings/Loading";
import { Icon } from "../ui/Icon";
import { initialsApart } from "../ui/initials";
import { ORCHESTRATOR, companyQuery } from "./queries";

type CompanyMember = CompanyView["departments"][number]["members"][number];

/** The roster by department; who is an agent leads to its profile. */
export function Company() {
  const company = useQuery(companyQuery);
  return (
    <div className="scroll">
      <div className="settings-page">
        <p className="dim">
          This is the company that came with popagent: who has a profile is an agent; everybody else is only a name, does nothing and costs no model call.
        </p>
        <Loading query={company} what="the company">
          {({ departments }) => {
            const letters = lettersOf(departments.flatMap(({ members }) => members));
            return departments.map(({ id, name, purpose, members }) => (
              <section key={id} className="settings-group" aria-label={name}>
                <h2>{name}</h2>
                <p className="small dim">{purpose}</p>
                <ul className="card members">
                  {members.map((member) => (
                    <li key={member.id}>
                      <Member member={member} letters={letters.get(member.id) ?? ""} />
                    </li>
                  ))}
                </ul>
              </section>
            ));
          }}
        </Loading>
      </div>
    </div>
  );
}

/** Agents keep the letters that they have elsewhere. */
function lettersOf(members: CompanyMember[]): Map<string, string> {
  const inTurn = [...members.filter((each) => each.isAgent), ...members.filter((each) => !each.isAgent)];
  const letters = initialsApart(inTurn.map(({ name }) => name));
  return new Map(inTurn.map(({ id }, index) => [id, letters[index] ?? ""]));
}

/** Who is an agent leads to its profile by the whole of its row. */
function Member({ member: { id, name, title, isAgent, delegable }, letters }: { member: CompanyMember; letters: string }) {
  const about = (
    <>
      <span className="monogram" aria-hidden="true">
        {letters}
      </span>
      <span className="section-name">
        <span className={isAgent ? "strong" : ""}>{name}</span>
        {title !== name && <span className="xs dim">{title}</span>}
      </span>
      {isAgent && <span className={`chip end ${delegable ? "live" : ""}`}>{delegable ? "can be delegated to" : id === ORCHESTRATOR ? "talks to you" : "agent"}</span>}
    </>
  );
  if (!isAgent) return <span className="member">{about}</span>;
  return (
    <Link href={`/agents/${id}`} className="member">
      {about}
      <Icon name="right" className="faint" />
    </Link>
  );
}
