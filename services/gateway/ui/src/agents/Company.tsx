import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import type { CompanyView } from "../contracts";
import { Loading } from "../settings/Loading";
import { Icon } from "../ui/Icon";
import { initials } from "../ui/initials";
import { ORCHESTRATOR, companyQuery } from "./queries";

type CompanyMember = CompanyView["departments"][number]["members"][number];

/** The roster by department; who is an agent leads to its profile. */
export function Company() {
  const company = useQuery(companyQuery);
  return (
    <div className="scroll">
      <div className="settings-page">
        <p className="dim">Who has a profile is an agent. The others are names and addresses: they do nothing by themselves.</p>
        <Loading query={company} what="the company">
          {({ departments }) =>
            departments.map(({ id, name, purpose, members }) => (
              <section key={id} className="settings-group" aria-label={name}>
                <h2>{name}</h2>
                <p className="small dim">{purpose}</p>
                <ul className="card members">
                  {members.map((member) => (
                    <li key={member.id}>
                      <Member member={member} />
                    </li>
                  ))}
                </ul>
              </section>
            ))
          }
        </Loading>
      </div>
    </div>
  );
}

/** Who is an agent leads to its profile by the whole of its row. */
function Member({ member: { id, name, title, isAgent, delegable } }: { member: CompanyMember }) {
  const about = (
    <>
      <span className="monogram" aria-hidden="true">
        {initials(name)}
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
