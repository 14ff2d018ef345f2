import { useQuery } from "@tanstack/react-query";
import { Fragment } from "react";
import { Link } from "wouter";
import { api, isAway, sentence } from "../api/client";
import { healthQuery } from "../app/queries";
import type { HealthProblem, HealthView, StoreHealthView, SuiteHealthView } from "../contracts";
import { Coded } from "../ui/Coded";
import { Icon } from "../ui/Icon";
import { StateGlyph } from "../ui/StateGlyph";
import { count, exactly, plural, size, when } from "../ui/words";
import { Loading } from "./Loading";

const storeQuery = {
  queryKey: ["store-health"],
  queryFn: ({ signal }: { signal: AbortSignal }) => api.get<StoreHealthView>("/api/observability/health", signal),
  staleTime: 0,
};

/** How every service is, what is down, what works all the same, and what to do. */
export function Health() {
  const health = useQuery({ ...healthQuery, staleTime: 0 });
  const store = useQuery(storeQuery);
  return (
    <div className="scroll">
      <div className="settings-page wide">
        <Loading query={health} what="the health of the services">
          {(suite) => (
            <>
              <Sum
                suite={suite}
                busy={health.isFetching || store.isFetching}
                again={() => {
                  void health.refetch();
                  void store.refetch();
                }}
              />
              {suite.problems.map((problem) => (
                <Problem key={problem.name} problem={problem} />
              ))}
              <Services suite={suite} />
            </>
          )}
        </Loading>
        <section className="settings-group">
          <h2>Store of traces</h2>
          {store.data ? (
            <dl className="facts">
              <dt>Size</dt>
              <dd>{size(store.data.sizeBytes)}</dd>
              <dt>Holds</dt>
              <dd>
                {plural(store.data.spans, "span")}, {plural(store.data.logs, "log record")}
              </dd>
              <dt>Since</dt>
              <dd>{store.data.oldestAt ? exactly(store.data.oldestAt) : "nothing is stored yet"}</dd>
              <dt>Newest</dt>
              <dd>{store.data.newestAt ? when(store.data.newestAt) : "–"}</dd>
              <dt>Behind</dt>
              <dd>{store.data.pendingBatches === 0 ? "nothing waits" : `${count(store.data.pendingBatches)} batches wait`}</dd>
            </dl>
          ) : (
            <p className="small dim">{store.failureReason ? `${isAway(store.failureReason) ? "Store unreachable; work goes on. " : ""}${sentence(store.failureReason)}` : "Asking…"}</p>
          )}
          <p>
            <Link href="/observe" className="link">
              Open the traces
            </Link>
          </p>
        </section>
      </div>
    </div>
  );
}

function Sum({ suite, busy, again }: { suite: SuiteHealthView; busy: boolean; again: () => void }) {
  const { ready, problems } = suite;
  const words = !ready ? "popagent is not ready" : problems.length > 0 ? "popagent works, not all of it" : "All is well";
  return (
    <div className="line health-sum">
      <StateGlyph state={!ready ? "failed" : problems.length > 0 ? "interrupted" : "completed"} />
      <h2 className="grow">{words}</h2>
      <button type="button" className="btn dense" disabled={busy} onClick={again}>
        <Icon name="retry" />
        {busy ? "Asking…" : "Ask again"}
      </button>
    </div>
  );
}

function Problem({ problem }: { problem: HealthProblem }) {
  return (
    <section className={`remark ${problem.decisive ? "fail" : "wait"} problem`} aria-label={problem.name}>
      <Icon name="alert" />
      <div className="grow">
        <h3>
          <Coded text={`${problem.name}: ${problem.reason}`} />
        </h3>
        <dl className="facts">
          <dt>Still works</dt>
          <dd>
            <Coded text={problem.stillWorks} />
          </dd>
          <dt>What to do</dt>
          <dd>
            <Coded text={problem.fix} />
            {problem.name === "model" && (
              <>
                {" "}
                <Link href="/settings/models" className="link">
                  Connect a model
                </Link>
              </>
            )}
          </dd>
          {problem.services.length > 0 && (
            <>
              <dt>Noticed by</dt>
              <dd>{problem.services.join(", ")}</dd>
            </>
          )}
        </dl>
      </div>
    </section>
  );
}

function Services({ suite }: { suite: SuiteHealthView }) {
  return (
    <table className="services">
      <caption className="sr">Services and their checks</caption>
      <thead>
        <tr>
          <th scope="col">Service</th>
          <th scope="col">Checks</th>
          <th scope="col">Version</th>
        </tr>
      </thead>
      <tbody>
        {suite.services.map((service) => (
          <Service key={service.service} service={service} />
        ))}
      </tbody>
    </table>
  );
}

function Service({ service }: { service: HealthView }) {
  return (
    <tr>
      <th scope="row">
        <span className="line">
          <StateGlyph state={service.ready ? "completed" : "failed"} label={service.ready ? "ready" : "not ready"} />
          {service.service}
        </span>
      </th>
      <td>
        <ul className="checks">
          {Object.entries(service.checks).map(([name, state]) => (
            <Fragment key={name}>
              <li className={isTrouble(state) ? "chip fail" : "chip"}>
                {state === "ok" ? (
                  <>
                    {name} <span className="sr">ok</span>
                  </>
                ) : (
                  <span>
                    <Coded text={`${name}: ${state}`} />
                  </span>
                )}
              </li>
              {service.details[name] && <li className="detail">{service.details[name]}</li>}
            </Fragment>
          ))}
        </ul>
      </td>
      <td className="faint">{service.version || "–"}</td>
    </tr>
  );
}

/** What nobody set up is told and is no trouble. */
function isTrouble(state: string): boolean {
  return state !== "ok" && !state.startsWith("not set up");
}
