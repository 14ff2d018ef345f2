import { queryOptions } from "@tanstack/react-query";
import { api, query } from "../api/client";
import { AGENTS, client } from "../app/queries";
import type { SkillList, SkillView } from "../contracts";

/** Skills on their way out: whatever is loaded meanwhile, they are not shown. */
export const leaving = new Set<string>();

/** All skills of an agent; a page holds what fits into one message between services. */
export const skillsQuery = (agentId: string) =>
  queryOptions({
    queryKey: [AGENTS, "skills", agentId],
    queryFn: async ({ signal }) => {
      const items: SkillView[] = [];
      let cursor: string | null = null;
      do {
        const page: SkillList = await api.get<SkillList>(`/api/agents/${agentId}/skills${query({ limit: 200, cursor })}`, signal);
        items.push(...page.items);
        cursor = page.nextCursor;
      } while (cursor);
      return items.filter((skill) => !leaving.has(skill.id));
    },
  });

/** Show a skill as the server has just told it; what was heard of a newer one stays. */
export function keepSkill(skill: SkillView): void {
  client.setQueryData(skillsQuery(skill.agentId).queryKey, (items) => {
    if (!items || items.some((each) => each.id === skill.id && each.revision > skill.revision)) return items;
    return [...items.filter((each) => each.id !== skill.id), skill].sort((a, b) => (a.name < b.name ? -1 : 1));
  });
}

export function dropSkill({ id, agentId }: SkillView): void {
  client.setQueryData(skillsQuery(agentId).queryKey, (items) => items?.filter((skill) => skill.id !== id));
}

export function loadAgain(agentId: string): void {
  void client.invalidateQueries({ queryKey: skillsQuery(agentId).queryKey });
}

export function pathOf({ id, agentId }: SkillView): string {
  return `/api/agents/${agentId}/skills/${id}`;
}
