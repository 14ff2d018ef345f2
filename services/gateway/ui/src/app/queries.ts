import { type InfiniteData, QueryClient, infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import { ApiError, api, query } from "../api/client";
import type { Heard } from "../api/events";
import type {
  AgentRuntimeView,
  ModelConnectionView,
  ModelsView,
  SessionList,
  SessionSummary,
  SessionView,
  SuiteHealthView,
  WorkspaceList,
} from "../contracts";
import { noteChannelSettings, noteMessage } from "../channels/list";
import { dropTask, noteTask } from "../tasks/lists";
import { noteJob } from "./jobs";

/** Which chats a list shows. */
export interface SessionFilter {
  q: string;
  workspaceId: string | null;
  archived: boolean;
}

export const client = new QueryClient({
  defaultOptions: {
    queries: {
      // Events say what changed, so nothing is asked for again by time or focus.
      staleTime: Number.POSITIVE_INFINITY,
      refetchOnWindowFocus: false,
      retry: (count, error) => count < 3 && error instanceof ApiError && [0, 429, 503, 504].includes(error.status),
    },
  },
});

/** A chat without its messages, as the lists hold it. */
export function summaryOf(session: SessionView | SessionSummary): SessionSummary {
  const { messages: _, previousCursor: __, nextCursor: ___, ...summary } = session as SessionView;
  return summary;
}

export function nameOf(session: Pick<SessionSummary, "title">): string {
  return session.title || "New chat";
}

/** Chats on their way out: whatever a list loads or hears meanwhile, they are not shown. */
export const leaving = new Set<string>();

export const sessionsQuery = (filter: SessionFilter) =>
  infiniteQueryOptions({
    queryKey: ["sessions", filter],
    queryFn: async ({ pageParam, signal }) => {
      const wanted = query({ ...filter, archived: filter.archived || null, limit: 50, cursor: pageParam });
      const page = await api.get<SessionList>(`/api/sessions${wanted}`, signal);
      return { ...page, items: page.items.filter((item) => !leaving.has(item.id)) };
    },
    initialPageParam: null as string | null,
    getNextPageParam: (page) => page.nextCursor,
  });

export const workspacesQuery = queryOptions({
  queryKey: ["workspaces"],
  queryFn: ({ signal }) => api.get<WorkspaceList>("/api/workspaces", signal),
});

export const modelsQuery = queryOptions({
  queryKey: ["models"],
  queryFn: ({ signal }) => api.get<ModelsView>("/api/models", signal),
});

/** Everything that is known of agents is kept below this key. */
export const AGENTS = "agents";

/** The hooks are kept under this key. */
export const HOOKS = "hooks";

/** Everything that is known of schedules is kept below this key. */
export const SCHEDULES = "schedules";

export const settingsQuery = queryOptions({
  queryKey: ["settings", "agent-runtime"],
  queryFn: ({ signal }) => api.get<AgentRuntimeView>("/api/settings/agent-runtime", signal),
});

/** Which server answers. */
export const connectionQuery = queryOptions({
  queryKey: ["model-connection"],
  queryFn: ({ signal }) => api.get<ModelConnectionView>("/api/models/connection", signal),
  // Whether the model answers changes by itself.
  staleTime: 0,
});

export const healthQuery = queryOptions({
  queryKey: ["health"],
  queryFn: async ({ signal }) => {
    try {
      return await api.get<SuiteHealthView>("/api/health", signal);
    } catch (error) {
      // 503 carries the same view: it is what the person needs to see.
      if (error instanceof ApiError && error.status === 503 && Array.isArray(error.body["services"])) {
        return error.body as unknown as SuiteHealthView;
      }
      throw error;
    }
  },
});

/** The chat as the lists know it; null when none of them has it. */
export function knownSession(id: string): SessionSummary | null {
  for (const [, data] of client.getQueriesData<InfiniteData<SessionList>>({ queryKey: ["sessions"] })) {
    for (const page of data?.pages ?? []) {
      const found = page.items.find((item) => item.id === id);
      if (found) return found;
    }
  }
  return null;
}

/** Bring what is shown up to date with what was heard. */
export function follow(heard: Heard): void {
  if (heard.kind === "resync") {
    void client.invalidateQueries();
  } else if (heard.kind === "health") {
    const before = client.getQueryData(healthQuery.queryKey)?.checks["model"];
    client.setQueryData(healthQuery.queryKey, heard.health);
    if (before !== undefined && before !== heard.health.checks["model"]) askForModels();
  } else {
    switch (heard.name) {
      case "sessions-changed":
      case "turns-started":
      case "turns-ended":
        place(heard.event.session);
        break;
      case "sessions-deleted":
        drop(heard.event.sessionId);
        break;
      case "workspaces-registered":
      case "workspaces-changed":
      case "workspaces-deleted":
        void client.invalidateQueries({ queryKey: workspacesQuery.queryKey });
        break;
      case "jobs-changed":
        noteJob(client, heard.event.job);
        break;
      case "tasks-changed":
      case "tasks-started":
      case "tasks-stopped":
      case "tasks-interrupted":
        noteTask(client, heard.event.task);
        break;
      case "tasks-deleted":
        dropTask(client, heard.event.taskId);
        break;
      case "schedules-changed":
      case "schedules-deleted":
        void client.invalidateQueries({ queryKey: [SCHEDULES] });
        break;
      case "channels-message":
        noteMessage(client, heard.event);
        break;
      case "channels-settings":
        noteChannelSettings(client, heard.event.settings);
        break;
      case "agents-changed":
        void client.invalidateQueries({ queryKey: [AGENTS] });
        break;
      case "hooks-changed":
      case "hooks-deleted":
        void client.invalidateQueries({ queryKey: [HOOKS] });
        break;
      case "skills-changed":
      case "skills-deleted":
        void client.invalidateQueries({ queryKey: [AGENTS, "skills", heard.event.agentId] });
        void client.invalidateQueries({ queryKey: [AGENTS, "health"] });
        break;
      case "settings-agent-runtime":
        client.setQueryData(settingsQuery.queryKey, heard.event.settings);
        askForModels();
        break;
      case "models-connection":
        askForModels();
        break;
    }
  }
}

/** Another model may answer now. */
export function askForModels(): void {
  void client.invalidateQueries({ queryKey: modelsQuery.queryKey });
  void client.invalidateQueries({ queryKey: connectionQuery.queryKey });
}

function matches(session: SessionSummary, filter: SessionFilter): boolean {
  const isArchived = session.archivedAt !== null;
  return isArchived === filter.archived && (filter.workspaceId === null || filter.workspaceId === session.workspaceId);
}

/** Put a chat where it belongs now in every list: newest activity first. A list of search results is asked again. */
export function place(session: SessionSummary): void {
  if (leaving.has(session.id)) return;
  for (const [queryKey, data] of client.getQueriesData<InfiniteData<SessionList>>({ queryKey: ["sessions"] })) {
    const filter = queryKey[1] as SessionFilter;
    if (!data) continue;
    if (filter.q) {
      void client.invalidateQueries({ queryKey });
      continue;
    }
    const known = data.pages.flatMap((page) => page.items).find((item) => item.id === session.id);
    // Told late: what is shown is newer.
    if (known && (known.updatedAt > session.updatedAt || known.revision > session.revision)) continue;
    const pages = data.pages.map((page) => ({ ...page, items: page.items.filter((item) => item.id !== session.id) }));
    const first = pages[0];
    if (first && matches(session, filter)) {
      const at = first.items.findIndex((item) => item.updatedAt <= session.updatedAt);
      first.items.splice(at < 0 ? first.items.length : at, 0, { ...session, match: null });
    }
    client.setQueryData(queryKey, { ...data, pages });
  }
}

/** Take a chat out of every list. */
export function drop(sessionId: string): void {
  client.setQueriesData<InfiniteData<SessionList>>({ queryKey: ["sessions"] }, (data) =>
    data && {
      ...data,
      pages: data.pages.map((page) => ({ ...page, items: page.items.filter((item) => item.id !== sessionId) })),
    },
  );
}
