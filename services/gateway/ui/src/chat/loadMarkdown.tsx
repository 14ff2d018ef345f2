import { lazy } from "react";
import type Markdown from "./Markdown";

const ATTEMPTS = 4;
const WAIT_MS = 700;

// One promise for all: the file is fetched once, and begun before the first answer needs it.
let loading: Promise<{ default: typeof Markdown }> | null = null;

/** Fetch the renderer; over a network that is away it is tried again, and then the plain text stays. */
export function loadMarkdown(): Promise<{ default: typeof Markdown }> {
  loading ??= attempt(ATTEMPTS);
  return loading;
}

async function attempt(left: number): Promise<{ default: typeof Markdown }> {
  try {
    return await import("./Markdown");
  } catch {
    if (left > 1) {
      await new Promise((resolve) => setTimeout(resolve, WAIT_MS * (ATTEMPTS - left + 1)));
      return attempt(left - 1);
    }
    loading = null;
    return { default: Plain as typeof Markdown };
  }
}

function Plain({ text }: { text: string; isGrowing: boolean }) {
  return <p className="prose raw">{text}</p>;
}

export const LateMarkdown = lazy(loadMarkdown);
