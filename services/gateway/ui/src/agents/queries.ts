import { queryOptions } from "@tanstack/react-query";
import { api } from "../api/client";
import { AGENTS, client } from "../app/queries";
import type { AgentHealthView, AgentList, AgentView, CompanyView } from "../contracts";

/** The user's spelling; the one agent that people talk to. */
export const ORCHESTRATOR = "orchistrator";

/** Whether tasks, schedules and posts may name it. */
export function takesWork(agent: Pick<AgentView, "id" | "delegable">): boolean {
  return agent.delegable || agent.id === ORCHESTRATOR;
}

export const agentsQuery = queryOptions({
  queryKey: [AGENTS, "list"],
  queryFn: ({ signal }) => api.get<AgentList>("/api/agents", signal),
});

export const agentHealthQuery = queryOptions({
  queryKey: [AGENTS, "health"],
  queryFn: ({ signal }) => api.get<AgentHealthView>("/api/agents/health", signal),
  // Which models are offered changes by itself.
  staleTime: 0,
});

export const companyQuery = queryOptions({
  queryKey: [AGENTS, "company"],
  queryFn: ({ signal }) => api.get<CompanyView>("/api/company", signal),
});

/** Show a profile as the server has just told it; what was heard of a newer one stays. */
export function keepAgent(agent: AgentView): void {
  client.setQueryData(agentsQuery.queryKey, (list) =>
    list && { ...list, items: list.items.map((each) => (each.id === agent.id && each.revision <= agent.revision ? agent : each)) },
  );
  void client.invalidateQueries({ queryKey: agentHealthQuery.queryKey });
  void client.invalidateQueries({ queryKey: companyQuery.queryKey });
}
