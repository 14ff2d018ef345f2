import { useQuery } from "@tanstack/react-query";
import { useSyncExternalStore } from "react";
import { events } from "../api/events";
import { Icon } from "../ui/Icon";
import { healthQuery } from "./queries";

/** What is down, what still works, and what to do; and one thin line while the connection is lost. */
export function HealthBanner() {
  const connection = useSyncExternalStore(events.watch, () => events.connection);
  const health = useQuery(healthQuery);
  if (connection === "lost") {
    return (
      <div className="notice wait" role="status">
        <Icon name="alert" />
        <span className="grow">Connection lost. Work goes on; reconnecting…</span>
        <button type="button" className="btn dense" onClick={() => events.reconnectNow()}>
          Now
        </button>
      </div>
    );
  }
  const down = (health.data?.services ?? []).filter((service) => !service.ready);
  const checks = Object.entries(health.data?.checks ?? {}).filter(([, state]) => state !== "ok");
  if (down.length === 0 && checks.length === 0) return null;
  return (
    <div className={`notice ${health.data?.ready ? "wait" : "fail"}`} role="alert">
      <Icon name="alert" />
      <span className="grow">
        {checks.map(([name, state]) => `${name}: ${state}`).join(" · ") ||
          `${down.map((service) => service.service).join(", ")} ${down.length === 1 ? "is" : "are"} not ready`}
      </span>
    </div>
  );
}
