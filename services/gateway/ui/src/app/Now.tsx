import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Link } from "wouter";
import { Icon } from "../ui/Icon";
import { StateGlyph } from "../ui/StateGlyph";
import { useModelTrouble } from "../welcome/modelTrouble";
import { healthQuery, modelsQuery, sessionsQuery } from "./queries";

/** At the foot of the rail: what runs, which model answers, how the suite is. */
export function Now() {
  const models = useQuery(modelsQuery);
  const answers = useModelTrouble() === null;
  const sessions = useInfiniteQuery(sessionsQuery({ q: "", workspaceId: null, archived: false }));
  const running = sessions.data?.pages.flatMap((page) => page.items).filter((chat) => chat.runningTurnId !== null) ?? [];
  const first = running[0];
  return (
    <section className="now" aria-label="Now">
      {first && (
        <Link
          href={running.length === 1 ? `/chat/${first.id}` : "/observe?status=running"}
          className="line"
          title={running.length === 1 ? `Answers now: ${first.title}` : "What runs now"}
        >
          <StateGlyph state="running" />
          <span className="label">{running.length} running</span>
        </Link>
      )}
      {models.data && (
        <Link href="/settings/models" className="line" title={answers ? "The model that answers" : "No model answers"}>
          <Icon name="model" className={answers ? "" : "is-wait"} />
          <span className="label cut">{answers ? (models.data.defaultModel ?? "Model") : "No model answers"}</span>
        </Link>
      )}
      <Link href="/settings/health" className="line" title="How every service is">
        <Services />
      </Link>
    </section>
  );
}

function Services() {
  const health = useQuery(healthQuery);
  const { data } = health;
  if (!data) return <span className="label faint">{health.isError ? "Not reachable" : "Asking…"}</span>;
  const ready = data.services.filter((service) => service.ready).length;
  const isWell = data.ready && ready === data.services.length;
  return (
    <>
      {isWell ? <Icon name="check" /> : <Icon name="alert" className={data.ready ? "is-wait" : "is-fail"} />}
      <span className="label">
        {ready} of {data.services.length} services ready
      </span>
    </>
  );
}
