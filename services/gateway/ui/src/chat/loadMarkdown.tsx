import { type ComponentType, lazy } from "react";
import { Plain } from "./Plain";

type Renderer = { default: ComponentType<{ text: string; isGrowing: boolean }> };

const ATTEMPTS = 4;
const WAIT_MS = 700;
const LATE_MS = 1_000;

// One promise for all: the file is fetched once, and begun before the first answer needs it.
let loading: Promise<Renderer> | null = null;

/** Fetch the renderer; over a network that is away it is tried again, and then the plain text stays. */
export function loadMarkdown(): Promise<Renderer> {
  loading ??= fetchRenderer(ATTEMPTS);
  return loading;
}

/** Fetch it when nothing else is to be done; returns how not to. */
export function loadMarkdownWhenIdle(): () => void {
  const load = () => void loadMarkdown();
  // Safari has no such moment; after a while everything that matters more has begun.
  if (!("requestIdleCallback" in window)) {
    const timer = setTimeout(load, LATE_MS);
    return () => clearTimeout(timer);
  }
  const idle = requestIdleCallback(load, { timeout: LATE_MS });
  return () => cancelIdleCallback(idle);
}

async function fetchRenderer(left: number): Promise<Renderer> {
  try {
    return await import("./Markdown");
  } catch {
    if (left > 1) {
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS * (ATTEMPTS - left + 1)));
      return fetchRenderer(left - 1);
    }
    return { default: Plain };
  }
}

export const LateMarkdown = lazy(loadMarkdown);
