import type { LogView, TraceView } from "../contracts";
import { duration, exactly } from "../ui/words";
import type { Tree } from "./waterfall";

/** What the services wrote into their logs meanwhile, oldest first. */
export function TraceLogs({ trace, tree, onChoose }: { trace: TraceView; tree: Tree; onChoose: (span: string) => void }) {
  if (trace.logs.length === 0) {
    return (
      <div className="scroll">
        <div className="empty">
          <h2>No log records</h2>
          <p>Nothing was worth a line. Spans say what was done and how long it took.</p>
        </div>
      </div>
    );
  }
  return (
    <div className="scroll">
      <table className="logs">
        <caption className="sr">Log records of this trace, oldest first</caption>
        <thead>
          <tr>
            <th scope="col">After</th>
            <th scope="col">Level</th>
            <th scope="col">Service</th>
            <th scope="col">Message</th>
          </tr>
        </thead>
        <tbody>
          {trace.logs.map((log, index) => (
            <LogRow key={index} log={log} tree={tree} onChoose={onChoose} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function LogRow({ log, tree, onChoose }: { log: LogView; tree: Tree; onChoose: (span: string) => void }) {
  const level = log.level.toLowerCase();
  const tone = /error|critical/.test(level) ? "is-fail" : level.startsWith("warn") ? "is-wait" : "faint";
  const span = log.spanId ? tree.nodes.get(log.spanId) : undefined;
  return (
    <tr>
      <td>
        <time dateTime={log.at} title={exactly(log.at)}>
          {duration(Math.max(0, Date.parse(log.at) - tree.beganAt))}
        </time>
      </td>
      <td className={tone}>{level}</td>
      <td>{log.service}</td>
      <td className="message">
        <span>{log.message}</span>
        {span && (
          <button type="button" className="link" onClick={() => onChoose(span.id)}>
            {span.title}
          </button>
        )}
      </td>
    </tr>
  );
}
