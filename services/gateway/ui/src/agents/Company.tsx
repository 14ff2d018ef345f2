import { useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { Loading } from "../settings/Loading";
import { companyQuery } from "./queries";

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
                      <span className="section-name">
                        <span>{member.isAgent ? <Link href={`/agents/${member.id}`} className="link">{member.name}</Link> : member.name}</span>
                        <span className="xs dim">{member.title}</span>
                      </span>
                      {member.isAgent && <span className={`chip ${member.delegable ? "live" : ""}`}>{member.delegable ? "can be delegated to" : "agent"}</span>}
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
