import { type ComponentType, useSyncExternalStore } from "react";
import { Plain } from "./Plain";

type Drawn = { text: string; isGrowing: boolean };
type Renderer = { default: ComponentType<Drawn>; rehearse?: () => Generator<void> };

const ATTEMPTS = 4;
const WAIT_MS = 700;
const LATE_MS = 1_000;
const SOON_MS = 400;

// One promise for all: the file is fetched once, and begun before the first answer needs it.
let loading: Promise<void> | null = null;
let loaded: Renderer | null = null;
const waiting = new Set<() => void>();

/** Fetch the renderer; over a network that is away it is tried again, and then the plain text stays. */
function loadMarkdown(): Promise<void> {
  loading ??= fetchRenderer(ATTEMPTS).then((renderer) => {
    loaded = renderer;
    for (const tell of waiting) tell();
  });
  return loading;
}

/** Wait for the renderer, but not long: what is drawn without it first moves what is read when it comes. */
export function rendererIfSoon(): Promise<void> {
  return Promise.race([loadMarkdown(), new Promise<void>((resolve) => setTimeout(resolve, SOON_MS))]);
}

/** Fetch it when nothing else is to be done; returns how not to. */
export function loadMarkdownWhenIdle(): () => void {
  const load = () => void loadMarkdown().then(() => loaded?.rehearse && whenIdle(loaded.rehearse()));
  // Safari has no such moment; after a while everything that matters more has begun.
  if (!("requestIdleCallback" in window)) {
    const timer = setTimeout(load, LATE_MS);
    return () => clearTimeout(timer);
  }
  const idle = requestIdleCallback(load, { timeout: LATE_MS });
  return () => cancelIdleCallback(idle);
}

function whenIdle(steps: Generator<void>): void {
  if ("requestIdleCallback" in window) requestIdleCallback(() => steps.next().done || whenIdle(steps));
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

/** Text as Markdown; as it is written until the renderer is here. Not by Suspense, which would draw both, and wait between. */
export function LateMarkdown(drawn: Drawn) {
  const renderer = useSyncExternalStore(watch, () => loaded);
  return renderer ? <renderer.default {...drawn} /> : <Plain text={drawn.text} />;
}

function watch(tell: () => void): () => void {
  void loadMarkdown();
  waiting.add(tell);
  return () => waiting.delete(tell);
}
