import { useQuery } from "@tanstack/react-query";
import { useEffect, useState, useSyncExternalStore } from "react";
import { Link, useLocation } from "wouter";
import { events } from "../api/events";
import type { HealthProblem } from "../contracts";
import { Coded } from "../ui/Coded";
import { Icon } from "../ui/Icon";
import { healthQuery } from "./queries";

/** A break shorter than this is no news: the stream comes back by itself. */
const SHORT_BREAK_MS = 1_500;

/** What is down, what still works, and what to do; and one thin line while the connection is lost. */
export function HealthBanner() {
  const [location] = useLocation();
  const isLost = useLost();
  const health = useQuery(healthQuery);
  if (isLost) {
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
  const problems = (health.data?.problems ?? []).filter(({ name }) => !isSaidBy(location, name));
  const gravest = problems[0];
  if (!gravest) return null;
  return <Trouble problem={gravest} others={problems.length - 1} isDown={health.data?.ready === false} />;
}

/** Some screens say a trouble themselves, where it matters. */
function isSaidBy(location: string, problem: string): boolean {
  if (location === "/settings/health") return true;
  return problem === "model" && (location.startsWith("/chat") || location === "/settings/models");
}

function Trouble({ problem, others, isDown }: { problem: HealthProblem; others: number; isDown: boolean }) {
  const [open, setOpen] = useState(false);
  return (
    <div className={`notice trouble ${isDown ? "fail" : "wait"}`} role="alert">
      <Icon name="alert" />
      <div className="grow">
        <p>
          <b className="strong">
            <Coded text={`${problem.name}: ${problem.reason}`} />
          </b>{" "}
          <span className="trouble-still">{problem.stillWorks}</span>
        </p>
        {open && (
          <p id="trouble-fix">
            <Coded text={problem.fix} />
          </p>
        )}
      </div>
      <button type="button" className="btn dense" aria-expanded={open} aria-controls="trouble-fix" onClick={() => setOpen((was) => !was)}>
        What to do
      </button>
      <Link href={problem.name === "model" ? "/settings/models" : "/settings/health"} className="btn dense">
        {problem.name === "model" ? "Connect a model" : others > 0 ? `${others} more` : "Health"}
      </Link>
    </div>
  );
}

/** Whether the stream of events is lost for longer than a blink. */
function useLost(): boolean {
  const connection = useSyncExternalStore(events.watch, () => events.connection);
  const [isLost, setLost] = useState(false);
  useEffect(() => {
    // While it is being opened again nothing is known: what was said stays.
    if (connection === "open") setLost(false);
    if (connection !== "lost") return;
    const timer = setTimeout(() => setLost(true), SHORT_BREAK_MS);
    return () => clearTimeout(timer);
  }, [connection]);
  return isLost && connection !== "open";
}
