import { Link } from "wouter";
import type { TraceView } from "../contracts";
import { count, duration, exactly, plural } from "../ui/words";
import { stateInk, stateWord } from "./stateWords";
import { factsOf, stateOfTrace } from "./spans";
import { type Node, type Tree, timeByKind } from "./waterfall";

/** Everything that is known of a span, or what a fold has in common. */
export function SpanFacts({ node, nowMs, trace }: { node: Node; nowMs: number; trace: TraceView }) {
  const { span } = node;
  const took = node.tookMs ?? Math.max(0, nowMs - node.startMs);
  const { known, other } = span ? factsOf(span) : { known: [], other: [] };
  const logs = span ? trace.logs.filter((log) => log.spanId === span.spanId) : [];
  return (
    <div className="facts-of">
      <h2 className={`k-${node.kind}`}>
        <span className="wf-kind">{node.kind}</span> <span className="facts-title">{node.title}</span>
      </h2>
      <dl className="facts">
        <dt>State</dt>
        <dd className={stateInk(node.state)}>{stateWord(node.state)}</dd>
        <dt>{span ? "Took" : "In all"}</dt>
        <dd>
          {duration(took)}
          {span && node.tookMs === null && " so far"}
        </dd>
        <dt>Began</dt>
        <dd>after {duration(node.startMs)}</dd>
        <dt>Service</dt>
        <dd>{node.service}</dd>
        {!span && (
          <>
            <dt>Holds</dt>
            <dd>{plural(node.count, "span")} that are alike</dd>
          </>
        )}
        {known.map(({ label, value }) => (
          <FactRow key={label} label={label} value={value} />
        ))}
      </dl>
      {span?.statusText && <p className="well facts-status">{span.statusText}</p>}
      {logs.length > 0 && (
        <section>
          <h3>{plural(logs.length, "log record")}</h3>
          <ul className="facts-logs">
            {logs.slice(0, 20).map((log, index) => (
              <li key={index} className={/^(error|critical)$/i.test(log.level) ? "is-fail" : ""}>
                {log.message}
              </li>
            ))}
          </ul>
        </section>
      )}
      {trace.sessionId && (
        <p>
          <Link href={`/chat/${trace.sessionId}`} className="link">
            Open the chat
          </Link>
        </p>
      )}
      {span && (
        <details>
          <summary>As it was recorded</summary>
          <dl className="facts recorded">
            <FactRow label="name" value={span.name} />
            <FactRow label="span" value={span.spanId} />
            <FactRow label="began" value={exactly(span.startedAt)} />
            {other.map(({ label, value }) => (
              <FactRow key={label} label={label} value={value} />
            ))}
          </dl>
        </details>
      )}
    </div>
  );
}

function FactRow({ label, value }: { label: string; value: string }) {
  return (
    <>
      <dt>{label}</dt>
      <dd>{value}</dd>
    </>
  );
}

/** The trace as a whole, and where its time went. */
export function TraceFacts({ trace, tree, nowMs }: { trace: TraceView; tree: Tree; nowMs: number }) {
  const kinds = timeByKind(tree, nowMs);
  const most = kinds[0]?.tookMs ?? 1;
  const services = [...new Set(trace.spans.map((span) => span.service))];
  return (
    <div className="facts-of">
      <h2>This trace</h2>
      <dl className="facts">
        <dt>State</dt>
        <dd className={stateInk(stateOfTrace(trace))}>{stateWord(stateOfTrace(trace))}</dd>
        <dt>Began</dt>
        <dd>{exactly(trace.startedAt)}</dd>
        <dt>Took</dt>
        <dd>
          {duration(trace.durationMs ?? Math.max(0, nowMs))}
          {trace.durationMs === null && " so far"}
        </dd>
        <dt>Asked</dt>
        <dd>{trace.name}</dd>
        <dt>Services</dt>
        <dd>{services.join(", ")}</dd>
        {trace.inputTokens + trace.outputTokens > 0 && (
          <>
            <dt>Tokens</dt>
            <dd>
              {count(trace.inputTokens)} in, {count(trace.outputTokens)} out
            </dd>
          </>
        )}
        {trace.turnId && (
          <>
            <dt>Turn</dt>
            <dd className="mono">{trace.turnId}</dd>
          </>
        )}
        <dt>Trace</dt>
        <dd className="mono">{trace.traceId}</dd>
      </dl>
      {kinds.length > 0 && (
        <section>
          <h3>Where the time went</h3>
          <ul className="kinds">
            {kinds.map(({ kind, tookMs }) => (
              <li key={kind} className={`k-${kind}`}>
                <span className="wf-kind">{kind}</span>
                <span className="kinds-bar" aria-hidden="true">
                  <i style={{ width: `${(tookMs / most) * 100}%` }} />
                </span>
                <span className="wf-took">{duration(tookMs)}</span>
              </li>
            ))}
          </ul>
          <p className="xs faint">Each moment counts for the innermost span that ran then.</p>
        </section>
      )}
      {trace.sessionId && (
        <p>
          <Link href={`/observe?session=${trace.sessionId}`} className="link">
            All traces of this chat
          </Link>
        </p>
      )}
    </div>
  );
}
