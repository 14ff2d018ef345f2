// Generated from proto/. Do not edit: change the contract, then run `make contracts`.

/** A tool call. Secrets are blanked, and what is long is cut, before it is stored. */
export interface ActivityCall {
  callId: string;
  tool: string;
  /** Cut to a text when they are longer than a record may be. */
  arguments: unknown;
  result: string | null;
  error: string | null;
  status: "running" | "completed" | "failed" | "denied";
}

/** Something a specialist did in a step: a piece of text, pieces of one step belong together, or a tool call. */
export interface ActivityEntry {
  step: number;
  kind: "text" | "call";
  text?: string;
  tool?: string;
  /** The beginning of the arguments, for a person. */
  input?: string;
  /** Of a call. */
  state?: "running" | "done" | "failed";
  /** Why a hook kept the call from being made; it failed then. */
  refusal?: string;
  durationMs?: number;
}

/** A stored record. The text of a running step grows: the record keeps its `seq` and gets a higher `revision`. */
export interface ActivityRecord {
  kind: "step-start" | "text" | "tool-call" | "step" | "status";
  agentId: string | null;
  /** Counts the model calls of one agent's run from 1. */
  step: number;
  text: string;
  /** Of an ended step. */
  finishReason: string | null;
  calls: Array<ActivityCall>;
  /** The order of the transcript. */
  seq: number;
  /** Rises with every write of this transcript. */
  revision: number;
  attempt: number;
  at: string;
}

/** Either a directory below the workspace root, or the address of a repository to clone there. */
export interface AddWorkspaceBody {
  /** Needed with a path; else that of the directory. */
  name?: string | null;
  /** Relative to the workspace root; it must exist. */
  path?: string | null;
  /** https, ssh, git, or user@host:path, without a password or token. */
  url?: string | null;
  /** One plain name; by default the last part of the url. */
  directory?: string | null;
}

/** `data` of a `data-agentActivity` part, whose id is the delegating tool call. Of an agent that a letter woke it is the call which sent the letter, after those that led to it, with slashes. In the stream each chunk holds only what changed: objects merge deeply over what was told before, values replace. The stored message has the whole. */
export interface AgentActivity {
  agentId?: string;
  agentName?: string;
  model?: string;
  /** Where the specialist's own messages are. */
  threadId?: string;
  /** The beginning of what it was asked. */
  task?: string;
  /** The agent whose letter woke it; absent where work was given to it. */
  askedBy?: string;
  maxSteps?: number;
  startedAt?: string;
  state?: "running" | "completed" | "failed" | "stopped";
  /** Model calls so far. */
  steps?: number;
  /** By number, from 1; at most 200. */
  entries?: Record<string, ActivityEntry>;
  /** Entries beyond those. */
  omitted?: number;
  usage?: TokenUsage;
  durationMs?: number;
  /** The ceiling of steps forced its answer. */
  budgetExhausted?: boolean;
}

/** Runs that begin from now on use the new profile; `GET /api/agents` has it. */
export interface AgentChanged {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  agentId: string;
  name: string;
  /** Names of the fields. */
  changed: Array<string>;
}

/** One thing that is not as it should be in a profile or an enabled skill, or that one should know. */
export interface AgentFinding {
  agentId: string;
  /** For programs; the list is in docs/api.md. */
  code: string;
  /** A note needs no repair and does not count for `ok`. */
  severity: "fault" | "note";
  /** Which field of the profile, or of the skill. */
  field: string | null;
  /** Which of its skills; null: the profile itself. */
  skillId: string | null;
  message: string;
  /** What to do, in words. */
  fix: string;
}

/** The same profiles, skills, tools and models give the same findings in the same order. */
export interface AgentHealthView {
  /** There is no fault. */
  ok: boolean;
  /** How many were looked at. */
  agents: number;
  /** How many enabled skills were looked at. */
  skills: number;
  /** False while the model server does not list its models: none is checked. */
  modelsKnown: boolean;
  findings: Array<AgentFinding>;
}

/** Every agent, the orchestrator first, then as in the company's roster. */
export interface AgentList {
  nextCursor: string | null;
  items: Array<AgentView>;
  /** Every tool there is. */
  tools: Array<ToolView>;
}

/** Fields to change; an absent one stays. Only `sourceUrl` and `modelOverride` may be null. */
export interface AgentPatch {
  /** The one you saw last. */
  revision: number;
  name?: string | null;
  /** Tells the orchestrator what to delegate to this agent. */
  delegationDescription?: string | null;
  /** The whole of its guidance, in every run's prompt. */
  instructions?: string | null;
  /** Where the guidance comes from. */
  sourceUrl?: string | null;
  workspaceAccess?: "none" | "read-only" | "read-write" | null;
  browserAccess?: boolean | null;
  /** The orchestrator itself cannot be. */
  delegable?: boolean | null;
  /** Names of tools that exist, each once, in order of importance. */
  tools?: Array<string> | null;
  /** Used before the request's model and the default; null: inherit. */
  modelOverride?: string | null;
}

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

/** Fields to change; an absent one stays. `revision`, when sent, must be the stored one. `x-seeded` in the schema is the value that a new installation begins with. */
export interface AgentRuntimePatch {
  /** The one you saw last. */
  revision?: number | null;
  /** auto: the connected server, else the embedded model; router or local: only the one or the other. */
  modelSource?: "auto" | "router" | "local" | null;
  /** Answers what names no model; null: POPAGENT_MODEL, else the first model of the server. */
  defaultModel?: string | null;
  /** Model calls a turn. */
  supervisorMaxSteps?: number | null;
  /** Model calls a delegated run. Higher ceilings for background work need a longer taskTimeoutMs. */
  specialistMaxSteps?: number | null;
  /** Tool calls of one step that run at the same time. */
  concurrentToolCalls?: number | null;
  /** How often a hook may send the agent back to its answer in one turn. */
  processorRetries?: number | null;
  /** What the model is told before its last step. */
  finalResponseFeedback?: string | null;
  /** Newest messages of the chat that a specialist is given. */
  delegationContextMessages?: number | null;
  /** Longest result of a specialist, in characters; the rest is cut. */
  delegationResultCharacters?: number | null;
  /** What the orchestrator is told when a specialist failed. */
  delegationFailureText?: string | null;
  /** What stands at the end of a result that was cut. */
  delegationTruncationText?: string | null;
  /** Background tasks that run at the same time. */
  backgroundConcurrency?: number | null;
  /** How often background tasks are looked for whose time has come, as after the pause before another attempt, in milliseconds. A new one is noticed at once. */
  backgroundPollMs?: number | null;
  /** Wall clock of a task, in milliseconds. */
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

/** A stored profile: all that makes an agent what it is; bounds are stated on AgentPatch. */
export interface AgentView {
  id: string;
  name: string;
  delegationDescription: string;
  instructions: string;
  sourceUrl: string | null;
  workspaceAccess: "none" | "read-only" | "read-write";
  browserAccess: boolean;
  delegable: boolean;
  /** In order of importance: a small model is offered the first ones. */
  tools: Array<string>;
  modelOverride: string | null;
  /** The override came with popagent: where the model server does not offer it, it is passed over. */
  overrideIsSeeded: boolean;
  /** Rises with every change; send it with PATCH. 0: as popagent came. */
  revision: number;
  updatedAt: string;
}

/** Something too big for a message, kept in the blob bucket for an hour; the digest is checked when it is read. */
export interface BlobRef {
  id: string;
  sizeBytes: number;
  sha256: string;
  mediaType: string;
}

/** Oldest first (AI SDK UI messages). */
export interface BranchMessages {
  messages: Array<Record<string, unknown>>;
}

/** A run of messages of a branch: the `count` messages that end with `last_id`. */
export interface BranchPage {
  lastId: string;
  count: number;
}

/** Messages that are new or were changed, each as it is now, in the order of their revisions. */
export interface ChannelChanges {
  items: Array<ChannelMessage>;
  /** Ask for what came after this one. */
  revision: number;
  more: boolean;
  /** Changes are missing here: load the history again. */
  reset: boolean;
}

/** Oldest first, about 700 kB at most. */
export interface ChannelHistory {
  items: Array<ChannelMessage>;
  /** Asks for the messages before these; null at the beginning. */
  previousSeq: number | null;
  /** Of the channel; follow it from here. */
  revision: number;
}

/** By title; never more than a page. */
export interface ChannelList {
  nextCursor: string | null;
  items: Array<ChannelView>;
}

/** A message. Who wrote it is said by popagent alone, never by a client. */
export interface ChannelMessage {
  id: string;
  channelId: string;
  /** Its place in the channel, without a hole; it never changes. */
  seq: number;
  /** Of its newest change, in the order of all changes of the channel. */
  revision: number;
  /** The message that it answers; that one answers none. */
  threadId: string | null;
  authorKind: "user" | "agent" | "system";
  /** `user`, the id of an agent, or `popagent`. */
  authorId: string;
  authorName: string;
  /** Markdown; empty when it was deleted. */
  body: string;
  /** The agents that it names and that work can be given to. */
  mentions: Array<string>;
  workspaceId: string | null;
  /** The task that it started. */
  run: ChannelRun | null;
  /** The task that it tells of. */
  taskId: string | null;
  editedAt: string | null;
  deletedAt: string | null;
  createdAt: string;
}

/** A message is new, was edited or deleted, or its task is in another state. Its version is its revision. */
export interface ChannelMessageChanged {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  channelId: string;
  messageId: string;
  seq: number;
  threadId: string | null;
  authorKind: "user" | "agent" | "system";
  runState: "waiting" | "queued" | "running" | "cancelling" | "completed" | "failed" | "cancelled" | "dead-letter" | null;
  taskId: string | null;
  deleted: boolean;
  /** The beginning of its text. */
  excerpt: string;
}

/** The task that a post started. */
export interface ChannelRun {
  taskId: string;
  /** Null: the orchestrator. */
  agentId: string | null;
  /** waiting: the task is being made. */
  state: "waiting" | "queued" | "running" | "cancelling" | "completed" | "failed" | "cancelled" | "dead-letter";
  /** Why there is no task yet, or none at all. */
  note: string;
}

/** The next post goes by these. */
export interface ChannelSettingsChanged {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  settings: ChannelSettingsView;
}

/** Fields to change; an absent one stays. `revision`, when sent, must be the stored one. */
export interface ChannelSettingsPatch {
  /** The one you saw last. */
  revision?: number | null;
  autoReply?: boolean | null;
  agentId?: string | null;
}

/** What posts start. */
export interface ChannelSettingsView {
  /** A post that mentions nobody is answered too. */
  autoReply: boolean;
  /** Who answers such a post. Null: the orchestrator. */
  agentId: string | null;
  revision: number;
  updatedAt: string;
}

/** A channel and how far it was read. */
export interface ChannelView {
  id: string;
  title: string;
  /** Of its newest message; 0 when there is none. */
  lastSeq: number;
  lastReadSeq: number;
  /** Messages of others behind the one that was read last; 1,000 at most. */
  unread: number;
  /** Of its newest change. */
  revision: number;
  createdAt: string;
}

/** Body of POST /api/chat; with `messages`, as the stock client sends it, the last user message is taken. Any other key is refused: tools, system text and execution options are the server's. */
export interface ChatRequest {
  /** The session; an unknown id creates it. */
  id: string;
  message?: Record<string, unknown> | null;
  messages?: Array<Record<string, unknown>> | null;
  trigger?: "submit-message" | "regenerate-message";
  messageId?: string | null;
  /** The message that the client shows above the new one, null when there is none. Without it, those of `messages` count; without either, the message follows whatever is the last one. */
  parentId?: string | null;
  model?: string | null;
  workspaceId?: string | null;
}

/** Members in the order of the roster. */
export interface CompanyDepartment {
  id: string;
  name: string;
  purpose: string;
  members: Array<CompanyMember>;
}

/** An identity. One that is no agent has a name and nothing else; it costs no model call. */
export interface CompanyMember {
  id: string;
  /** Of an agent, the one in its profile. */
  name: string;
  title: string;
  isAgent: boolean;
  /** The orchestrator may delegate to it. */
  delegable: boolean;
}

/** The roster, by department. */
export interface CompanyView {
  departments: Array<CompanyDepartment>;
}

/** What a server answered to a list of its models and, when there is one, to a few words. */
export interface ConnectionTestView {
  ok: boolean;
  /** failed: it lists models, and the one that was asked does not answer. */
  class: "ok" | "refused" | "dns" | "timeout" | "tls" | "unauthorized" | "not-openai" | "no-models" | "failed";
  /** What was found and what to do, in words. */
  sentence: string;
  /** The first 200. */
  models: Array<string>;
  modelCount: number;
  /** To the first word, else to the list; null when nothing came. */
  latencyMs: number | null;
  /** The model that answered. */
  answeredBy: string | null;
}

/** A hook. Its secret is sealed at the door and never told again. */
export interface CreateHookBody {
  name: string;
  event: "SessionStart" | "UserPromptSubmit" | "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "SubagentStart" | "SubagentStop" | "TaskStart" | "TaskStop" | "Stop" | "SessionEnd";
  /** `*`, or a regular expression (RE2) that the whole name of the tool must match, such as `write|edit`; of SubagentStart and SubagentStop the specialist's id. Other events have nothing to match: `*`. */
  matcher?: string;
  kind?: "http" | "command";
  /** Of the kind http: where the event is posted; its origin must be one of POPAGENT_HOOK_ORIGINS. */
  url?: string;
  /** Of the kind command: a program and its arguments, without a shell. The folder that POPAGENT_HOOK_FOLDER names is /hooks. */
  argv?: Array<string>;
  /** Milliseconds; of all of the answer. */
  timeoutMs?: number;
  /** By default `block` where the event may be refused. Other events know only `allow`. */
  onFailure?: "allow" | "block" | null;
  /** Hooks of one event run one after another, the lowest first. */
  orderIndex?: number;
  enabled?: boolean;
  /** Signs each request; 16 characters at least. */
  secret?: string | null;
}

/** A new page; folders that are missing are made. */
export interface CreatePageBody {
  /** Relative, with slashes; a page ends in .md or .markdown. What breaks a rule is refused with it. */
  path: string;
  /** Markdown, at most 1,000,000 characters. */
  body?: string;
}

/** Everything is optional: a new chat in the default workspace. */
export interface CreateSessionBody {
  id?: string | null;
  title?: string | null;
  workspaceId?: string | null;
}

/** What a client sends. Whose work it is (`source`) is never a client's to say. */
export interface CreateTaskBody {
  /** What is to be done; characters, not tokens. */
  prompt: string;
  /** The default workspace when absent. */
  workspaceId?: string | null;
  /** Who does it; the orchestrator when absent. */
  agentId?: string | null;
  model?: string | null;
  priority?: number;
  maxAttempts?: number;
}

/** What a rule means. */
export interface CronPreview {
  cron: string;
  words: string;
  timezone: string;
  next: Array<string>;
}

/** A page that can be brought back: `version` is the text that it had last. */
export interface DeletedPage {
  id: string;
  path: string;
  title: string;
  version: number;
  characters: number;
  deletedAt: string;
}

/** The newest first, for thirty days. */
export interface DeletedPages {
  nextCursor: string | null;
  items: Array<DeletedPage>;
}

/** What was deleted. */
export interface DeletedView {
  id: string;
  deleted: boolean;
}

/** A model server that answers on this machine's loopback. */
export interface DetectedServer {
  /** What it most likely is. */
  name: string;
  url: string;
  /** The first 200. */
  models: Array<string>;
  /** It wants a key before it tells its models. */
  needsKey: boolean;
}

/** In the order of the table of well-known ports. */
export interface DetectedServers {
  nextCursor: string | null;
  items: Array<DetectedServer>;
}

/** A section that was found. */
export interface DocHit {
  workspaceId: string;
  pageId: string;
  path: string;
  title: string;
  /** The heading and those above it; none above the first one of a page. */
  heading: Array<string>;
  /** Of the heading, as a link to the page ends in it; empty above the first one. */
  anchor: string;
  snippet: Array<SnippetPart>;
  /** Comparable within one answer alone. */
  score: number;
  /** What it was found by. */
  matched: "words";
}

/** The best first; of several words those are found best that have the rarest of them. */
export interface DocHits {
  nextCursor: string | null;
  items: Array<DocHit>;
  /** Words that stand nowhere and were taken for others, as “woord → word”. */
  corrected: Array<string>;
}

/** A job of docs-indexer was stored, came further, or ended; told a few times a second at most. */
export interface DocsJobChanged {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  job: JobView;
}

/** A page was made, written, moved by itself or brought back. */
export interface DocsPageChanged {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  page: PageSummary;
  change: "created" | "written" | "moved" | "restored" | "imported";
  previousPath: string | null;
}

/** A page is gone from its folder. */
export interface DocsPageDeleted {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  pageId: string;
  workspaceId: string;
  path: string;
}

/** What lies in a workspace, or below a folder of it, by path. */
export interface DocsTree {
  nextCursor: string | null;
  items: Array<TreeEntry>;
}

/** A folder was made, moved with all in it, or deleted with all in it, or pages were imported below it. The aggregate is the workspace. */
export interface DocsTreeChanged {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  change: "made" | "moved" | "deleted" | "imported";
  path: string;
  previousPath: string | null;
}

/** Another text. */
export interface EditBody {
  /** Markdown; characters, not bytes. */
  body: string;
}

/** The model that comes with popagent. */
export interface EmbeddedModelView {
  /** Its server was started; it may still be loading. */
  available: boolean;
  /** Its id once it has told it. */
  model: string | null;
  /** What it is good for, or why it does not run, in words. */
  note: string;
}

/** Every refusal; on conflicts the stored object stands beside these. */
export interface ErrorBody {
  /** One sentence for a person. */
  error: string;
  code: string;
  field: string | null;
}

/** A page as it is written into a file. */
export interface ExportedPage {
  path: string;
  body: string;
  updatedAt: string;
}

/** By path; as many as fit. */
export interface ExportedPages {
  nextCursor: string | null;
  items: Array<ExportedPage>;
}

/** A new folder. */
export interface FolderBody {
  /** Relative, with slashes; a page ends in .md or .markdown. What breaks a rule is refused with it. */
  path: string;
}

/** How much went with it; the pages can be brought back for thirty days. */
export interface FolderDeletedView {
  path: string;
  pages: number;
  folders: number;
}

/** A folder. */
export interface FolderView {
  path: string;
}

/** Something that is not well: what, what works all the same, what to do. */
export interface HealthProblem {
  /** The check, or the service that does not answer. */
  name: string;
  /** Who noticed. */
  services: Array<string>;
  reason: string;
  stillWorks: string;
  fix: string;
  /** It alone makes the suite not ready. */
  decisive: boolean;
}

/** How one service is; `checks` maps a dependency to `ok` or to the reason why not, in words. */
export interface HealthView {
  service: string;
  version: string;
  ready: boolean;
  checks: Record<string, string>;
  /** What a check found, in words. */
  details: Record<string, string>;
}

/** A hook was made or changed; runs that begin now use it. */
export interface HookChanged {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  hook: HookView;
}

/** A hook is gone. */
export interface HookDeleted {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  hookId: string;
}

/** In the order in which they run, never more than MOST_HOOKS; and where the operator lets new ones be. */
export interface HookList {
  nextCursor: string | null;
  items: Array<HookView>;
  /** What URLs may begin with: POPAGENT_HOOK_ORIGINS. */
  origins: Array<string>;
  /** Why no program can be a hook, and what to do; null when one can. */
  commandsProblem: string | null;
}

/** In the order in which they ran. */
export interface HookRunList {
  nextCursor: string | null;
  items: Array<HookRunView>;
}

/** One run of a hook, or why it did not run; `skipped`: another hook had refused before. */
export interface HookRunView {
  id: string;
  /** Rises with every run. */
  seq: number;
  /** Of the turn, or of the attempt of the task. */
  turnId: string | null;
  traceId: string | null;
  event: "SessionStart" | "UserPromptSubmit" | "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "SubagentStart" | "SubagentStop" | "TaskStart" | "TaskStop" | "Stop" | "SessionEnd";
  hookId: string;
  hookName: string;
  /** The tool's name, or the specialist's id; empty for events of other things. */
  subject: string;
  decision: "allow" | "deny" | null;
  reason: string;
  status: "ok" | "denied" | "timeout" | "error" | "skipped";
  /** What it was told, cut and without secrets. */
  input: unknown;
  /** What it answered, cut and without secrets. */
  output: string;
  durationMs: number;
  at: string;
}

/** How many runs of hooks a turn had, skipped ones too, and how many of them refused something. */
export interface HookTally {
  runs: number;
  denied: number;
}

/** How a hook answered an example of its event. */
export interface HookTrialView {
  status: "ok" | "denied" | "timeout" | "error" | "skipped";
  /** What would count; null for an event that is only told. */
  decision: "allow" | "deny" | null;
  reason: string;
  /** What it was sent; a program reads it on its standard input. */
  sent: Record<string, unknown>;
  /** What it answered, cut and without secrets. */
  output: string;
  durationMs: number;
}

/** A hook. UserPromptSubmit, PreToolUse, SubagentStart and Stop may refuse; the other events are only told. */
export interface HookView {
  id: string;
  name: string;
  event: "SessionStart" | "UserPromptSubmit" | "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "SubagentStart" | "SubagentStop" | "TaskStart" | "TaskStop" | "Stop" | "SessionEnd";
  matcher: string;
  kind: "http" | "command";
  /** Empty for a command. */
  url: string;
  /** Empty but for a command. */
  argv: Array<string>;
  /** Requests are signed with it; it is never told. */
  hasSecret: boolean;
  timeoutMs: number;
  /** What counts when the hook fails, hangs or answers nonsense. */
  onFailure: "allow" | "block";
  orderIndex: number;
  enabled: boolean;
  revision: number;
  createdAt: string;
  updatedAt: string;
}

/** A job was stored, came further, or ended; told a few times a second at most. */
export interface JobChanged {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  job: JobView;
}

/** Jobs that are not over first, then by age, the newest first. */
export interface JobList {
  nextCursor: string | null;
  items: Array<JobView>;
}

/** A piece of work that takes longer than one request. */
export interface JobView {
  id: string;
  kind: string;
  /** What it is for, in words. */
  title: string;
  /** The id of what it works on. */
  about: string | null;
  state: "queued" | "running" | "completed" | "failed";
  /** Share that is done; an attempt that was cut off begins anew. */
  progress: number;
  /** What it is doing, in words. */
  note: string;
  /** Why it failed, or its last attempt did. */
  error: string | null;
  /** What came of it, once it is completed. */
  result: Record<string, unknown> | null;
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

/** Why an answer failed or was interrupted; `text` is one sentence for a person. */
export interface MessageError {
  class: string;
  code?: string;
  text: string;
}

/** A message whose text holds every word of a search. */
export interface MessageHit {
  messageId: string;
  role: "user" | "assistant";
  /** Plain text around the first word that was found. */
  excerpt: string;
  at: string;
}

/** Oldest first. */
export interface MessageHits {
  nextCursor: string | null;
  items: Array<MessageHit>;
}

/** `metadata` of a message; every field is absent until it is known. While an answer grows it has no `state`. A person's message has `createdAt` and `siblings` at most. */
export interface MessageMetadata {
  turnId?: string;
  traceId?: string;
  /** When the turn began, or the person wrote. */
  createdAt?: string;
  model?: string;
  state?: "completed" | "stopped" | "failed" | "interrupted";
  /** From the request to the stored end. */
  durationMs?: number;
  endReason?: "stop" | "length" | "content-filter" | "error" | "stopped" | "interrupted";
  /** Of a failed or interrupted answer. */
  error?: MessageError;
  usage?: TokenUsage;
  /** Model calls. */
  steps?: number;
  /** The ceiling of steps forced the answer. */
  budgetExhausted?: boolean;
  /** GET /api/sessions/{id}/hooks?turnId= tells of them; absent where none ran. */
  hooks?: HookTally;
  /** Ids of the messages at this place of the thread, this one among them, oldest first: only in GET /api/sessions/{id}, and only of messages that have siblings. */
  siblings?: Array<string>;
}

/** A message named by its id; whatever else a client sends with it is the server's own and is dropped. */
export interface MessageRef {
  id: string;
}

/** A server to use from the next run on. Its key is sealed at the door; at most its last four characters show. */
export interface ModelConnectionBody {
  /** The one you saw last. */
  revision: number;
  /** Base URL of an OpenAI-compatible server, http or https, without a key in it. */
  url: string;
  /** Absent: keep the stored one, for the same server. Null: none. */
  key?: string | null;
}

/** The next run uses this server; without `url` the embedded model, if there is one. */
export interface ModelConnectionChanged {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  url: string | null;
  hasKey: boolean;
}

/** A server to try. Nothing is stored. */
export interface ModelConnectionTestBody {
  url: string;
  /** Absent: the connection's own, sent to its own server only. Null: none. */
  key?: string | null;
  /** Asked for a few words; by default one of its list. */
  model?: string | null;
}

/** Where answers come from. The key itself is never told. */
export interface ModelConnectionView {
  /** What the next run uses: POPAGENT_MODEL_URL, what the page saved, the embedded model, nothing. */
  source: "environment" | "page" | "embedded" | "none";
  /** Of the environment, else the one saved in the page, also while modelSource turns it off. */
  url: string | null;
  hasKey: boolean;
  /** The last four characters; null without a key, for a short one, and while it is unreadable. */
  keyHint: string | null;
  /** Answers a chat that names none; null while none is known. */
  model: string | null;
  /** Why no model would answer now, and what to do, in words. */
  lastError: string | null;
  embedded: EmbeddedModelView;
  /** Rises with every change in the page; send it with PUT. */
  revision: number;
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

/** Another place or name for a page or a folder; folders that are missing are made. */
export interface MoveBody {
  /** Relative, with slashes; a page ends in .md or .markdown. What breaks a rule is refused with it. */
  path: string;
  /** Relative, with slashes; a page ends in .md or .markdown. What breaks a rule is refused with it. */
  to: string;
  /** Of a page: refuse when it has another text by now. */
  revision?: string | null;
}

/** What was moved, and where it is now. */
export interface MovedView {
  kind: "folder" | "page";
  path: string;
  /** How many pages have another path. */
  pages: number;
}

/** It takes work again, unless somebody else has closed it too. */
export interface OpenedView {
}

/** It is in the history for thirty days. */
export interface PageDeletedView {
  id: string;
  path: string;
}

/** The newest first; of each page the newest 100 are kept. */
export interface PageHistory {
  nextCursor: string | null;
  page: PageSummary;
  items: Array<PageVersion>;
}

/** A page without its text. */
export interface PageSummary {
  id: string;
  workspaceId: string;
  path: string;
  /** Of the front matter, else the first heading of the first level, else the name. */
  title: string;
  /** SHA-256 of the text. */
  revision: string;
  /** Rises with every change, a move included. */
  version: number;
  characters: number;
  /** What it was imported from. */
  sourceId: string | null;
  createdAt: string;
  updatedAt: string;
}

/** A text that a page has or had. */
export interface PageVersion {
  version: number;
  /** Where the page was when it had this text, last. */
  path: string;
  revision: string;
  characters: number;
  writtenAt: string;
  isCurrent: boolean;
}

/** The same with its text. */
export interface PageVersionView {
  version: number;
  /** Where the page was when it had this text, last. */
  path: string;
  revision: string;
  characters: number;
  writtenAt: string;
  isCurrent: boolean;
  body: string;
}

/** A page. */
export interface PageView {
  id: string;
  workspaceId: string;
  path: string;
  /** Of the front matter, else the first heading of the first level, else the name. */
  title: string;
  /** SHA-256 of the text. */
  revision: string;
  /** Rises with every change, a move included. */
  version: number;
  characters: number;
  /** What it was imported from. */
  sourceId: string | null;
  createdAt: string;
  updatedAt: string;
  body: string;
}

/** Changes of a hook. */
export interface PatchHookBody {
  /** The one you saw last. */
  revision: number;
  name?: string | null;
  event?: "SessionStart" | "UserPromptSubmit" | "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "SubagentStart" | "SubagentStop" | "TaskStart" | "TaskStop" | "Stop" | "SessionEnd" | null;
  matcher?: string | null;
  kind?: "http" | "command" | null;
  url?: string | null;
  argv?: Array<string> | null;
  timeoutMs?: number | null;
  onFailure?: "allow" | "block" | null;
  orderIndex?: number | null;
  enabled?: boolean | null;
  /** Absent: keep the stored one. Null: none. */
  secret?: string | null;
}

/** Rename, archive or restore. */
export interface PatchSessionBody {
  revision: number;
  title?: string | null;
  archived?: boolean | null;
}

/** Rename. */
export interface PatchWorkspaceBody {
  revision: number;
  name: string;
}

/** What a client writes. It says nothing about who wrote it. */
export interface PostBody {
  /** Markdown; characters, not bytes. */
  body: string;
  /** A message of the channel that this one answers. */
  threadId?: string | null;
  /** Where an agent that is mentioned works; the default workspace when absent. */
  workspaceId?: string | null;
}

/** How far somebody has read. */
export interface ReadBody {
  seq: number;
}

/** How much of what a service keeps refers to something, at this moment. */
export interface ReferencesView {
  count: number;
}

/** What a client sends to register a directory that already exists below the workspace root. */
export interface RegisterWorkspaceBody {
  name: string;
  /** Relative to the workspace root. */
  path: string;
}

/** Why a task that did not complete counts as done. */
export interface ResolveTaskBody {
  /** Why it counts as done. */
  evidence: string;
}

/** A text of the history that shall be the page's again. */
export interface RestoreBody {
  version: number;
  /** The current one; null when the page is deleted. */
  revision?: string | null;
}

/** An enabled hook, in the order in which they run. */
export interface RunHook {
  id: string;
  name: string;
  event: "SessionStart" | "UserPromptSubmit" | "PreToolUse" | "PostToolUse" | "PostToolUseFailure" | "SubagentStart" | "SubagentStop" | "TaskStart" | "TaskStop" | "Stop" | "SessionEnd";
  matcher: string;
  kind: "http" | "command";
  url: string;
  argv: Array<string>;
  timeoutMs: number;
  onFailure: "allow" | "block";
  sealedSecret: string | null;
}

/** Enabled hooks; secrets are sealed to whoever asked. */
export interface RunHooks {
  items: Array<RunHook>;
}

/** The model server that answers at this moment; `url` is null when none is connected. */
export interface RunModel {
  url: string | null;
  sealedKey: string | null;
  /** Another one when address or key is another. */
  revision: string;
}

/** An enabled skill of one agent. */
export interface RunSkill {
  agentId: string;
  name: string;
  description: string;
  instructions: string;
  references: Record<string, string>;
}

/** All of them; large ones travel as a blob. */
export interface RunSkills {
  items: Array<RunSkill>;
}

/** Settings, agents, workspace, hooks and model as they are now. Secrets are sealed to whoever asked. */
export interface RunSnapshot {
  settings: AgentRuntimeView;
  model: RunModel;
  agent: AgentView;
  /** Whom the agent can give work to, in the order of the company. */
  delegable: Array<AgentView>;
  workspace: WorkspaceView;
  hooks: Array<RunHook>;
  skills: RunSkills | null;
  /** Holds RunSkills when they are too large for a message. */
  skillsBlob: BlobRef | null;
}

/** Rename, or shorten to a stored prefix; content is the server's and is never taken from a client. */
export interface SaveSessionBody {
  revision: number;
  title?: string | null;
  /** The ids to keep, a prefix of the stored branch. */
  messages?: Array<MessageRef> | null;
}

/** A schedule was made or changed, or ran. */
export interface ScheduleChanged {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  schedule: ScheduleView;
}

/** What is absent stays as it is; null means something for `agentId` and `model` alone. */
export interface ScheduleChanges {
  /** The one you saw last. */
  revision: number;
  name: string | null;
  prompt: string | null;
  cron: string | null;
  agentId: string | null;
  model: string | null;
  maxAttempts: number | null;
  catchUpMinutes: number | null;
  skipIfRunning: boolean | null;
  enabled: boolean | null;
}

/** Nothing of it is left but its tasks. */
export interface ScheduleDeleted {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  scheduleId: string;
}

/** What a person decides about a schedule. */
export interface ScheduleFields {
  name: string;
  /** What is to be done; characters, not tokens. */
  prompt: string;
  /** Five fields (minute, hour, day of the month, month, day of the week) or @hourly, @daily, @weekly, @monthly, @yearly, in the time zone of the server. */
  cron: string;
  /** The default workspace when absent; it never changes. */
  workspaceId: string | null;
  /** Who does it; the orchestrator when absent. */
  agentId: string | null;
  model: string | null;
  /** Of each task that comes of it. */
  maxAttempts: number;
  /** Minutes: a time that passed while nothing ran is made up for once when it is not longer ago. */
  catchUpMinutes: number;
  /** A time is skipped while a task of an earlier one still waits or runs. */
  skipIfRunning: boolean;
  enabled: boolean;
}

/** By name, never more than MOST_SCHEDULES. */
export interface ScheduleList {
  nextCursor: string | null;
  items: Array<ScheduleView>;
  timezone: string;
}

/** Newest first. */
export interface ScheduleRunList {
  nextCursor: string | null;
  items: Array<ScheduleRunView>;
}

/** What came of one planned time: a task, or why there is none. */
export interface ScheduleRunView {
  scheduleId: string;
  plannedAt: string;
  /** Somebody asked for it; it was no time of the rule. */
  asked: boolean;
  /** due: its task is being made; started: it was; skipped: an earlier one still ran; missed: it was too long ago; refused: no task can be made of it, `note` says why. */
  outcome: "due" | "started" | "skipped" | "missed" | "refused";
  note: string;
  /** The task that was made. */
  taskId: string | null;
}

/** A schedule. One of the source `self-update` belongs to the system: it can be paused, and nothing else. */
export interface ScheduleView {
  id: string;
  source: "user" | "self-update";
  workspaceId: string;
  name: string;
  prompt: string;
  /** Null: the orchestrator. */
  agentId: string | null;
  /** Null: the default model of the moment. */
  model: string | null;
  cron: string;
  /** The rule in English. */
  cronWords: string;
  /** Of the server. */
  timezone: string;
  maxAttempts: number;
  catchUpMinutes: number;
  skipIfRunning: boolean;
  enabled: boolean;
  /** Null while it is paused. */
  nextRunAt: string | null;
  lastRun: ScheduleRunView | null;
  revision: number;
  createdAt: string;
  updatedAt: string;
}

/** The public half of the key that values are sealed to. */
export interface SealingKeyView {
  /** X25519, base64url. */
  publicKey: string;
}

/** A person created, renamed, archived, restored or shortened a session, or switched its branch. Turns tell of it in their own events. */
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

/** A session that nobody sees any more; of a long one the messages go in the background. */
export interface SessionDeletedView {
  id: string;
  deleted: boolean;
  /** Deletes what it held; null when that is done. */
  job: JobView | null;
}

/** A row of the list; of a search, with where it matched. */
export interface SessionItem {
  id: string;
  title: string;
  /** A person named it; later messages do not rename it. */
  titleLocked: boolean;
  workspaceId: string;
  archivedAt: string | null;
  /** Rises by rename, archive, shorten and switching the branch, not by a turn. */
  revision: number;
  createdAt: string;
  updatedAt: string;
  runningTurnId: string | null;
  /** How the newest turn ended; null while one runs, after shortening and switching the branch. */
  lastTurnState: "completed" | "stopped" | "failed" | "interrupted" | null;
  /** The newest message that matches; null when the title does, and without a search. */
  match: MessageHit | null;
}

/** Newest activity first. */
export interface SessionList {
  nextCursor: string | null;
  items: Array<SessionItem>;
}

/** A session and its shown branch in pages that are small enough to be asked for, oldest first. */
export interface SessionOutline {
  session: SessionSummary;
  /** Its name. */
  workspace: string;
  /** The name of who answers. */
  agent: string;
  pages: Array<BranchPage>;
}

/** A row of the list. */
export interface SessionSummary {
  id: string;
  title: string;
  /** A person named it; later messages do not rename it. */
  titleLocked: boolean;
  workspaceId: string;
  archivedAt: string | null;
  /** Rises by rename, archive, shorten and switching the branch, not by a turn. */
  revision: number;
  createdAt: string;
  updatedAt: string;
  runningTurnId: string | null;
  /** How the newest turn ended; null while one runs, after shortening and switching the branch. */
  lastTurnState: "completed" | "stopped" | "failed" | "interrupted" | null;
}

/** A session with the newest messages of its branch, oldest first (AI SDK UI messages). */
export interface SessionView {
  id: string;
  title: string;
  /** A person named it; later messages do not rename it. */
  titleLocked: boolean;
  workspaceId: string;
  archivedAt: string | null;
  /** Rises by rename, archive, shorten and switching the branch, not by a turn. */
  revision: number;
  createdAt: string;
  updatedAt: string;
  runningTurnId: string | null;
  /** How the newest turn ended; null while one runs, after shortening and switching the branch. */
  lastTurnState: "completed" | "stopped" | "failed" | "interrupted" | null;
  messages: Array<Record<string, unknown>>;
  /** Asks for the messages before these; null at the beginning. */
  previousCursor: string | null;
  /** Asks for those after these; null at the branch's end. */
  nextCursor: string | null;
}

/** Show the branch through this message, down to the newest message below it. */
export interface SetHeadBody {
  revision: number;
  messageId: string;
}

/** A skill was made or changed; `GET /api/agents/{id}/skills` has it. */
export interface SkillChanged {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  skillId: string;
  agentId: string;
  name: string;
  enabled: boolean;
  /** Names of the fields; all that were given when it is new. */
  changed: Array<string>;
}

/** A skill is gone. */
export interface SkillDeleted {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  skillId: string;
  agentId: string;
  name: string;
}

/** What a skill is made of. */
export interface SkillFields {
  /** Lower-case letters and digits, in words joined by hyphens; one of its agent alone. */
  name: string;
  /** What it is for and when to use it: all that the agent knows of it before it opens it. */
  description: string;
  /** The procedure, in Markdown. */
  instructions: string;
  license: string | null;
  compatibility: string | null;
  /** What its author notes about it; nobody reads meaning into it. */
  metadata: Record<string, string>;
  allowedTools: string | null;
  /** Texts that the procedure points to, by path below references/; read one by one when needed. */
  references: Record<string, string>;
  provenance: string | null;
  enabled: boolean;
}

/** By name; a page holds about 800 kB at most, or one skill. */
export interface SkillList {
  nextCursor: string | null;
  items: Array<SkillView>;
}

/** Fields to change; an absent one stays. `license`, `compatibility`, `allowedTools`, `provenance` may be null. */
export interface SkillPatch {
  /** The one you saw last. */
  revision: number;
  name?: string | null;
  description?: string | null;
  instructions?: string | null;
  license?: string | null;
  compatibility?: string | null;
  metadata?: Record<string, string> | null;
  allowedTools?: string | null;
  /** All of them: what is not named is gone. */
  references?: Record<string, string> | null;
  provenance?: string | null;
  enabled?: boolean | null;
}

/** A stored skill; bounds are stated on SkillFields. */
export interface SkillView {
  id: string;
  agentId: string;
  name: string;
  description: string;
  instructions: string;
  license: string | null;
  compatibility: string | null;
  metadata: Record<string, string>;
  allowedTools: string | null;
  references: Record<string, string>;
  provenance: string | null;
  /** It was learned, and may be changed by what is learned later. Ends with the first edit. */
  evolutionManaged: boolean;
  /** A disabled one stays editable, and no run has it. */
  enabled: boolean;
  /** Rises with every change; send it with PATCH. 0: as it was made. */
  revision: number;
  createdAt: string;
  updatedAt: string;
}

/** A piece of a text, one after another; what was searched for is marked. */
export interface SnippetPart {
  text: string;
  marked: boolean;
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
  /** `ok`, `not set up: …`, or why not; `model` and `search` never count. */
  checks: Record<string, string>;
  services: Array<HealthView>;
  /** What a check found, in words; `model`: which one answers. */
  details: Record<string, string>;
  /** What is not well, the gravest first. */
  problems: Array<HealthProblem>;
}

/** A task was made, cancelled, asked to end, resolved, or waits again without an attempt in between. */
export interface TaskChanged {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  task: TaskSummary;
}

/** Nothing of it is left. */
export interface TaskDeleted {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  taskId: string;
}

/** An attempt that was told to end does not; its task stays as it is and nobody else takes it. */
export interface TaskInterrupted {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  task: TaskSummary;
  attempt: number;
  turnId: string;
  traceId: string | null;
}

/** Newest first. */
export interface TaskList {
  nextCursor: string | null;
  items: Array<TaskSummary>;
}

/** Records that are new or grew, in the order of the transcript; the task itself only behind the last of them. */
export interface TaskNews {
  records: Array<ActivityRecord>;
  /** Of the transcript; ask for what came after this one. */
  revision: number;
  more: boolean;
  /** There is no such place in the transcript: load it again. */
  reset: boolean;
  /** As it is now; null while it is of the version that was named. */
  task: TaskSummary | null;
}

/** An attempt began. Its turn and trace are those of its end. */
export interface TaskStarted {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  task: TaskSummary;
  attempt: number;
  turnId: string;
  traceId: string | null;
}

/** An attempt ended, told after it was stored. `task.state` is `queued` when another one follows. */
export interface TaskStopped {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  task: TaskSummary;
  attempt: number;
  turnId: string;
  traceId: string | null;
  outcome: "completed" | "failed" | "cancelled" | "dead-letter";
  errorClass: "provider" | "rate-limit" | "database" | "infrastructure" | "restart" | "browser" | "timeout" | "runner-lost" | "stale" | "hook-denied" | "cancelled" | "validation" | "permission" | "configuration" | "unknown" | null;
  error: string | null;
  /** The beginning of the output. */
  excerpt: string;
}

/** A task as lists show it: without its prompt, its output and its transcript. */
export interface TaskSummary {
  id: string;
  /** The beginning of the prompt, one line. */
  title: string;
  state: "queued" | "running" | "cancelling" | "completed" | "failed" | "cancelled" | "dead-letter";
  /** Never changes, nor does the workspace. */
  source: "user" | "self-update";
  workspaceId: string;
  /** Runs the governed workflow of repository changes. */
  workflow: boolean;
  /** Null: the orchestrator. */
  agentId: string | null;
  /** Null: the default model of the moment. */
  model: string | null;
  sessionId: string | null;
  scheduleId: string | null;
  /** The failed task whose cause this one is to remove. */
  remediates: string | null;
  /** The highest goes first. */
  priority: number;
  attemptCount: number;
  /** Rises by one with each attempt that a passing cause ended before it could do anything. */
  maxAttempts: number;
  /** Null unless it is queued. */
  nextAttemptAt: string | null;
  lastErrorClass: "provider" | "rate-limit" | "database" | "infrastructure" | "restart" | "browser" | "timeout" | "runner-lost" | "stale" | "hook-denied" | "cancelled" | "validation" | "permission" | "configuration" | "unknown" | null;
  lastError: string | null;
  deadLetteredAt: string | null;
  /** Since when the running attempt does not heed that it was told to end; it keeps its slot. */
  interruptedAt: string | null;
  /** Of the newest attempt; so is the trace. */
  turnId: string | null;
  traceId: string | null;
  /** The beginning of the output. */
  excerpt: string;
  /** Rises with every change but the transcript's. */
  version: number;
  createdAt: string;
  /** Of the newest attempt. */
  startedAt: string | null;
  endedAt: string | null;
}

/** A task with its transcript: the newest records, oldest first, about 600 kB at most. */
export interface TaskView {
  id: string;
  /** The beginning of the prompt, one line. */
  title: string;
  state: "queued" | "running" | "cancelling" | "completed" | "failed" | "cancelled" | "dead-letter";
  /** Never changes, nor does the workspace. */
  source: "user" | "self-update";
  workspaceId: string;
  /** Runs the governed workflow of repository changes. */
  workflow: boolean;
  /** Null: the orchestrator. */
  agentId: string | null;
  /** Null: the default model of the moment. */
  model: string | null;
  sessionId: string | null;
  scheduleId: string | null;
  /** The failed task whose cause this one is to remove. */
  remediates: string | null;
  /** The highest goes first. */
  priority: number;
  attemptCount: number;
  /** Rises by one with each attempt that a passing cause ended before it could do anything. */
  maxAttempts: number;
  /** Null unless it is queued. */
  nextAttemptAt: string | null;
  lastErrorClass: "provider" | "rate-limit" | "database" | "infrastructure" | "restart" | "browser" | "timeout" | "runner-lost" | "stale" | "hook-denied" | "cancelled" | "validation" | "permission" | "configuration" | "unknown" | null;
  lastError: string | null;
  deadLetteredAt: string | null;
  /** Since when the running attempt does not heed that it was told to end; it keeps its slot. */
  interruptedAt: string | null;
  /** Of the newest attempt; so is the trace. */
  turnId: string | null;
  traceId: string | null;
  /** The beginning of the output. */
  excerpt: string;
  /** Rises with every change but the transcript's. */
  version: number;
  createdAt: string;
  /** Of the newest attempt. */
  startedAt: string | null;
  endedAt: string | null;
  prompt: string;
  /** Empty until it completed. */
  output: string;
  /** Why nothing tries it again. */
  explanation: string | null;
  /** The evidence with which a person called it done. */
  resolution: string | null;
  /** The task that was made because this one failed. */
  remediationId: string | null;
  activity: Array<ActivityRecord>;
  /** Asks for the records before these; null at the beginning. */
  previousCursor: number | null;
  /** Of the transcript; ask for what came after this one. */
  revision: number;
}

/** `providerMetadata.popagent` of a text part: `failure` marks the sentence that is also `metadata.error.text`. */
export interface TextMetadata {
  failure?: boolean;
}

/** Tokens of all model calls of a turn; `estimated` when a model server did not tell. */
export interface TokenUsage {
  inputTokens: number;
  outputTokens: number;
  cachedTokens: number;
  reasoningTokens: number;
  estimated: boolean;
}

/** `toolMetadata` of a tool part; absent from other calls that were not carried out, or did not end. */
export interface ToolMetadata {
  durationMs?: number;
  /** A hook kept the call from being made; its error says why. */
  refused?: boolean;
}

/** A tool that a profile may name. */
export interface ToolView {
  name: string;
  /** What it may do; all but `read` need read-write access to the workspace. */
  access: "read" | "write" | "exec";
  /** What the model is told about it. */
  description: string;
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
  /** How the turn ended, as its span tells; null before that, and of plain requests. */
  turnState: "completed" | "stopped" | "failed" | "interrupted" | null;
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
  /** How the turn ended, as its span tells; null before that, and of plain requests. */
  turnState: "completed" | "stopped" | "failed" | "interrupted" | null;
  spans: Array<SpanView>;
  logs: Array<LogView>;
  truncated: boolean;
}

/** Records of one task in their order, newest page first; `previous_cursor` asks for those before these. */
export interface TranscriptPage {
  taskId: string;
  records: Array<ActivityRecord>;
  previousCursor: number | null;
  /** Ask for what came after this one. */
  revision: number;
}

/** A folder or a page; of a folder nothing but its path is known. */
export interface TreeEntry {
  kind: "folder" | "page";
  path: string;
  characters: number | null;
  updatedAt: string | null;
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

/** Where the work will be done. */
export interface WorkPlace {
  workspaceId: string;
}

/** A directory that could be registered; `path` is relative to the workspace root. */
export interface WorkspaceCandidate {
  /** It is a Git checkout. */
  isRepository: boolean;
  /** Of the checkout; null when it stands on no branch. */
  branch: string | null;
  path: string;
}

/** Repositories first, then by path; `complete` is false when there are more than are listed or looked at. */
export interface WorkspaceCandidates {
  nextCursor: string | null;
  items: Array<WorkspaceCandidate>;
  complete: boolean;
}

/** A workspace has another name. */
export interface WorkspaceChanged {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  workspace: WorkspaceView;
}

/** A workspace cannot be chosen any more; its folder is where it was. */
export interface WorkspaceDeleted {
  /** Also the Nats-Msg-Id. */
  eventId: string;
  /** What changed; versions count within it. */
  aggregateId: string;
  /** Rises with every change of the aggregate. */
  version: number;
  at: string;
  workspaceId: string;
}

/** Workspaces by name, the default one first. */
export interface WorkspaceList {
  nextCursor: string | null;
  items: Array<WorkspaceRow>;
  /** The workspace root as chat sees it, in a container the path inside; for people only. */
  root: string | null;
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

/** A registration with the state of its folder. */
export interface WorkspaceRow {
  /** It is a Git checkout. */
  isRepository: boolean;
  /** Of the checkout; null when it stands on no branch. */
  branch: string | null;
  id: string;
  name: string;
  path: string;
  isDefault: boolean;
  createdAt: string;
  revision: number;
  /** The folder can be opened. */
  exists: boolean;
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

/** Another text for a page. */
export interface WritePageBody {
  /** Relative, with slashes; a page ends in .md or .markdown. What breaks a rule is refused with it. */
  path: string;
  /** Markdown, at most 1,000,000 characters. */
  body: string;
  /** SHA-256 of the text in UTF-8, as it was read last. */
  revision: string;
}

/** Payload of each event, by subject. */
export interface EventBySubject {
  "popagent.chat.evt.agents-changed.v1": AgentChanged;
  "popagent.chat.evt.channels-message.v1": ChannelMessageChanged;
  "popagent.chat.evt.channels-settings.v1": ChannelSettingsChanged;
  "popagent.chat.evt.hooks-changed.v1": HookChanged;
  "popagent.chat.evt.hooks-deleted.v1": HookDeleted;
  "popagent.chat.evt.jobs-changed.v1": JobChanged;
  "popagent.chat.evt.models-connection.v1": ModelConnectionChanged;
  "popagent.chat.evt.sessions-changed.v1": SessionChanged;
  "popagent.chat.evt.sessions-deleted.v1": SessionDeleted;
  "popagent.chat.evt.settings-agent-runtime.v1": AgentRuntimeChanged;
  "popagent.chat.evt.skills-changed.v1": SkillChanged;
  "popagent.chat.evt.skills-deleted.v1": SkillDeleted;
  "popagent.chat.evt.turns-ended.v1": TurnEnded;
  "popagent.chat.evt.turns-started.v1": TurnStarted;
  "popagent.chat.evt.workspaces-changed.v1": WorkspaceChanged;
  "popagent.chat.evt.workspaces-deleted.v1": WorkspaceDeleted;
  "popagent.chat.evt.workspaces-registered.v1": WorkspaceRegistered;
  "popagent.docs-indexer.evt.jobs-changed.v1": DocsJobChanged;
  "popagent.docs-indexer.evt.pages-changed.v1": DocsPageChanged;
  "popagent.docs-indexer.evt.pages-deleted.v1": DocsPageDeleted;
  "popagent.docs-indexer.evt.tree-changed.v1": DocsTreeChanged;
  "popagent.scheduler.evt.schedules-changed.v1": ScheduleChanged;
  "popagent.scheduler.evt.schedules-deleted.v1": ScheduleDeleted;
  "popagent.task-runner.evt.tasks-changed.v1": TaskChanged;
  "popagent.task-runner.evt.tasks-deleted.v1": TaskDeleted;
  "popagent.task-runner.evt.tasks-interrupted.v1": TaskInterrupted;
  "popagent.task-runner.evt.tasks-started.v1": TaskStarted;
  "popagent.task-runner.evt.tasks-stopped.v1": TaskStopped;
}

/** What a form needs to know of one setting. */
export interface SettingField {
  meaning: string;
  /** What a new installation begins with. */
  default: string | number | null;
  nullable?: boolean;
  choices?: readonly string[];
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
}

export const agentRuntimeFields: Readonly<Record<Exclude<keyof AgentRuntimePatch, "revision">, SettingField>> = {
  modelSource: {"meaning": "auto: the connected server, else the embedded model; router or local: only the one or the other.", "default": "auto", "choices": ["auto", "router", "local"]},
  defaultModel: {"meaning": "Answers what names no model; null: POPAGENT_MODEL, else the first model of the server.", "default": null, "nullable": true, "maxLength": 200},
  supervisorMaxSteps: {"meaning": "Model calls a turn.", "default": 32, "minimum": 1, "maximum": 128},
  specialistMaxSteps: {"meaning": "Model calls a delegated run. Higher ceilings for background work need a longer taskTimeoutMs.", "default": 24, "minimum": 1, "maximum": 128},
  concurrentToolCalls: {"meaning": "Tool calls of one step that run at the same time.", "default": 4, "minimum": 1, "maximum": 32},
  processorRetries: {"meaning": "How often a hook may send the agent back to its answer in one turn.", "default": 2, "minimum": 0, "maximum": 10},
  finalResponseFeedback: {"meaning": "What the model is told before its last step.", "default": "No more tools can be used in this turn. Answer the person's last message now from what you found out, and say openly what is missing or was not done.", "minLength": 1, "maxLength": 4000},
  delegationContextMessages: {"meaning": "Newest messages of the chat that a specialist is given.", "default": 12, "minimum": 0, "maximum": 200},
  delegationResultCharacters: {"meaning": "Longest result of a specialist, in characters; the rest is cut.", "default": 12000, "minimum": 200, "maximum": 200000},
  delegationFailureText: {"meaning": "What the orchestrator is told when a specialist failed.", "default": "The specialist could not finish. Go on without its result, or try a smaller request.", "minLength": 1, "maxLength": 2000},
  delegationTruncationText: {"meaning": "What stands at the end of a result that was cut.", "default": "The result was cut here because it was too long.", "minLength": 1, "maxLength": 2000},
  backgroundConcurrency: {"meaning": "Background tasks that run at the same time.", "default": 2, "minimum": 1, "maximum": 32},
  backgroundPollMs: {"meaning": "How often background tasks are looked for whose time has come, as after the pause before another attempt, in milliseconds. A new one is noticed at once.", "default": 1000, "minimum": 100, "maximum": 600000},
  taskTimeoutMs: {"meaning": "Wall clock of a task, in milliseconds.", "default": 1800000, "minimum": 1000, "maximum": 86400000},
};
