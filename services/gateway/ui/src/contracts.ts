// Generated from proto/. Do not edit: change the contract, then run `make contracts`.

/** The next run uses these. */
export interface AgentRuntimeChanged {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  settings: AgentRuntimeView;
}

/** Fields to change; an absent one stays. `revision`, when sent, must be the stored one. */
export interface AgentRuntimePatch {
  revision?: number | null;
  /** auto: the configured endpoint, else the embedded model; router or local: only that. */
  modelSource?: "auto" | "router" | "local" | null;
  /** null: POPAGENT_MODEL, else the first model of the catalogue. */
  defaultModel?: string | null;
  /** Model calls a turn. */
  supervisorMaxSteps?: number | null;
  /** Model calls a delegated run. Higher ceilings for background work need a longer taskTimeoutMs. */
  specialistMaxSteps?: number | null;
  concurrentToolCalls?: number | null;
  processorRetries?: number | null;
  /** What the model is told before its last step. */
  finalResponseFeedback?: string | null;
  delegationContextMessages?: number | null;
  delegationResultCharacters?: number | null;
  delegationFailureText?: string | null;
  delegationTruncationText?: string | null;
  backgroundConcurrency?: number | null;
  backgroundPollMs?: number | null;
  /** Wall clock of a task. */
  taskTimeoutMs?: number | null;
}

/** The stored settings; bounds are stated on AgentRuntimePatch. */
export interface AgentRuntimeView {
  modelSource: "auto" | "router" | "local";
  defaultModel: string | null;
  supervisorMaxSteps: number;
  specialistMaxSteps: number;
  concurrentToolCalls: number;
  processorRetries: number;
  finalResponseFeedback: string;
  delegationContextMessages: number;
  delegationResultCharacters: number;
  delegationFailureText: string;
  delegationTruncationText: string;
  backgroundConcurrency: number;
  backgroundPollMs: number;
  taskTimeoutMs: number;
  revision: number;
  updatedAt: string;
}

/** Body of POST /api/chat; with `messages`, as the stock client sends it, the last user message is taken. Any other key is refused: tools, system text and execution options are the server's. */
export interface ChatRequest {
  /** The session; an unknown id creates it. */
  id: string;
  message?: Record<string, unknown> | null;
  messages?: Array<Record<string, unknown>> | null;
  trigger?: "submit-message" | "regenerate-message";
  messageId?: string | null;
  model?: string | null;
  workspaceId?: string | null;
}

/** Everything is optional: a new chat in the default workspace. */
export interface CreateSessionBody {
  id?: string | null;
  title?: string | null;
  workspaceId?: string | null;
}

/** What was deleted. */
export interface DeletedView {
  id: string;
  deleted: boolean;
}

/** Every refusal; on conflicts the stored object stands beside these. */
export interface ErrorBody {
  /** One sentence for a person. */
  error: string;
  code: string;
  field: string | null;
}

/** How one service is; `checks` maps a dependency to `ok` or to the reason why not, in words. */
export interface HealthView {
  service: string;
  version: string;
  ready: boolean;
  checks: Record<string, string>;
}

/** A piece of work that takes longer than one request. */
export interface JobView {
  id: string;
  kind: string;
  state: "queued" | "running" | "completed" | "failed";
  /** Share that is done. */
  progress: number;
  /** What it is doing, in words. */
  note: string;
  error: string | null;
  createdAt: string;
  updatedAt: string;
}

/** One log record. */
export interface LogView {
  at: string;
  service: string;
  level: string;
  logger: string;
  message: string;
  traceId: string | null;
  spanId: string | null;
}

/** A message named by its id; whatever else a client sends with it is the server's own and is dropped. */
export interface MessageRef {
  id: string;
}

/** The catalogue; `known` is false while the endpoint does not answer, and any well-formed id is accepted then. */
export interface ModelsView {
  models: Array<string>;
  /** Tokens, by model; a model of unknown size is absent. */
  contextWindows: Record<string, number>;
  defaultModel: string | null;
  known: boolean;
  /** Why the catalogue is unknown, and what to do, in words. */
  note: string;
}

/** Rename, archive or restore. */
export interface PatchSessionBody {
  revision: number;
  title?: string | null;
  archived?: boolean | null;
}

/** What a client sends to register a directory that already exists below the workspace root. */
export interface RegisterWorkspaceBody {
  name: string;
  /** Relative to the workspace root. */
  path: string;
}

/** Rename, or shorten to a stored prefix; content is the server's and is never taken from a client. */
export interface SaveSessionBody {
  revision: number;
  title?: string | null;
  /** The ids to keep, a prefix of the stored branch. */
  messages?: Array<MessageRef> | null;
}

/** A person created, renamed, archived, restored or shortened a session; turns tell of it in their own events. */
export interface SessionChanged {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  session: SessionSummary;
}

/** Nothing of it is left but long-term memories. */
export interface SessionDeleted {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  sessionId: string;
}

/** Newest activity first. */
export interface SessionList {
  nextCursor: string | null;
  items: Array<SessionSummary>;
}

/** A row of the list. */
export interface SessionSummary {
  id: string;
  title: string;
  /** A person named it; later messages do not rename it. */
  titleLocked: boolean;
  workspaceId: string;
  archivedAt: string | null;
  /** Rises by rename, archive and shorten, not by a turn. */
  revision: number;
  createdAt: string;
  updatedAt: string;
  runningTurnId: string | null;
}

/** A session with the newest messages of its branch, oldest first (AI SDK UI messages). */
export interface SessionView {
  id: string;
  title: string;
  /** A person named it; later messages do not rename it. */
  titleLocked: boolean;
  workspaceId: string;
  archivedAt: string | null;
  /** Rises by rename, archive and shorten, not by a turn. */
  revision: number;
  createdAt: string;
  updatedAt: string;
  runningTurnId: string | null;
  messages: Array<Record<string, unknown>>;
  /** Asks for the messages before these; null at the beginning. */
  previousCursor: string | null;
}

/** One span; `parent_id` null marks the root. Texts were redacted before they were stored. */
export interface SpanView {
  spanId: string;
  parentId: string | null;
  name: string;
  service: string;
  kind: string;
  startedAt: string;
  durationMs: number | null;
  status: "running" | "ok" | "error";
  statusText: string;
  attributes: Record<string, unknown>;
}

/** How much the store holds and how far behind it is. */
export interface StoreHealthView {
  ready: boolean;
  spans: number;
  logs: number;
  sizeBytes: number;
  oldestAt: string | null;
  newestAt: string | null;
  /** Batches on the bus that are not stored yet. */
  pendingBatches: number;
}

/** `ready` needs the application's and the observability PostgreSQL; models and search never count. */
export interface SuiteHealthView {
  ready: boolean;
  checks: Record<string, string>;
  services: Array<HealthView>;
}

/** Newest first. */
export interface TraceList {
  nextCursor: string | null;
  items: Array<TraceSummary>;
}

/** One trace, named by its root span; durations in milliseconds, null while it runs. */
export interface TraceSummary {
  traceId: string;
  name: string;
  service: string;
  startedAt: string;
  durationMs: number | null;
  status: "running" | "ok" | "error";
  spanCount: number;
  sessionId: string | null;
  turnId: string | null;
  inputTokens: number;
  outputTokens: number;
}

/** A trace with its spans in order of start, at most 5,000, and its log records, at most 500. */
export interface TraceView {
  traceId: string;
  name: string;
  service: string;
  startedAt: string;
  durationMs: number | null;
  status: "running" | "ok" | "error";
  spanCount: number;
  sessionId: string | null;
  turnId: string | null;
  inputTokens: number;
  outputTokens: number;
  spans: Array<SpanView>;
  logs: Array<LogView>;
  truncated: boolean;
}

/** A turn ended, once; `excerpt` is the beginning of its answer. */
export interface TurnEnded {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  turnId: string;
  session: SessionSummary;
  state: "queued" | "running" | "completed" | "stopped" | "failed" | "interrupted";
  errorClass: string | null;
  excerpt: string;
  inputTokens: number;
  outputTokens: number;
  traceId: string | null;
}

/** The running message so far as ready SSE text, to be followed by the live frames from chunk `next_chunk`. */
export interface TurnSnapshotView {
  turnId: string;
  messageId: string;
  state: "queued" | "running" | "completed" | "stopped" | "failed" | "interrupted";
  nextChunk: number;
  sse: string;
}

/** A turn waits for its first model call. */
export interface TurnStarted {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  turnId: string;
  session: SessionSummary;
  traceId: string | null;
}

/** Which turn answers; `created` is false when the same message had started it before. */
export interface TurnView {
  turnId: string;
  sessionId: string;
  /** Of the assistant message. */
  messageId: string;
  state: "queued" | "running" | "completed" | "stopped" | "failed" | "interrupted";
  created: boolean;
}

/** Workspaces by name, the default one first. */
export interface WorkspaceList {
  nextCursor: string | null;
  items: Array<WorkspaceView>;
}

/** A workspace can be chosen from now on. */
export interface WorkspaceRegistered {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  workspace: WorkspaceView;
}

/** A registered repository; `path` is relative to the workspace root, never a path of the server. */
export interface WorkspaceView {
  id: string;
  name: string;
  path: string;
  isDefault: boolean;
  createdAt: string;
  revision: number;
}

/** Payload of each event, by subject. */
export interface EventBySubject {
  "popagent.chat.evt.sessions-changed.v1": SessionChanged;
  "popagent.chat.evt.sessions-deleted.v1": SessionDeleted;
  "popagent.chat.evt.settings-agent-runtime.v1": AgentRuntimeChanged;
  "popagent.chat.evt.turns-ended.v1": TurnEnded;
  "popagent.chat.evt.turns-started.v1": TurnStarted;
  "popagent.chat.evt.workspaces-registered.v1": WorkspaceRegistered;
}
