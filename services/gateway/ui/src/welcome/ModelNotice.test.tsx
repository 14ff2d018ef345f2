// @vitest-environment happy-dom
import { QueryClientProvider } from "@tanstack/react-query";
import { type ReactNode, act } from "react";
import { type Root, createRoot } from "react-dom/client";
import { afterEach, expect, test, vi } from "vitest";
import { Now } from "../app/Now";
import { client, connectionQuery, follow, healthQuery, modelsQuery, workspacesQuery } from "../app/queries";
import type { ModelConnectionView, ModelsView, SuiteHealthView } from "../contracts";
import { ModelNotice } from "./ModelNotice";
import { Welcome } from "./Welcome";

const REASON = "The model server at 127.0.0.1:11434 cannot be reached. Is it running?";
const FIX = "Start the model server if it is down.";

function health(isWell: boolean): SuiteHealthView {
  const problem = { name: "model", services: ["chat"], reason: REASON, stillWorks: "", fix: FIX, decisive: false };
  return { ready: true, checks: { model: isWell ? "ok" : REASON }, services: [], details: {}, problems: isWell ? [] : [problem] };
}

// Whatever is asked again stays without an answer: what is set in a test counts.
vi.stubGlobal("fetch", vi.fn(() => new Promise(() => {})));

let root: Root | null = null;

/** An empty chat on a popagent whose model server was known when it was asked last. */
function shown(source: string, isKnown = true) {
  const models = { models: ["llama"], defaultModel: "llama", known: isKnown, note: "", contextWindows: {} };
  client.setQueryData<ModelsView>(modelsQuery.queryKey, models);
  client.setQueryData(connectionQuery.queryKey, { source, embedded: { note: "It is small." } } as ModelConnectionView);
  client.setQueryData(workspacesQuery.queryKey, { items: [], nextCursor: null, root: null });
  return rendered(
    <>
      <Welcome onAsk={() => {}} />
      <ModelNotice />
      <Now />
    </>,
  );
}

function rendered(what: ReactNode) {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const place = document.createElement("div");
  const made = (root = createRoot(place));
  act(() => made.render(<QueryClientProvider client={client}>{what}</QueryClientProvider>));
  return place;
}

const questions = (place: HTMLElement) => [...place.querySelectorAll<HTMLButtonElement>(".welcome-asks button")];

afterEach(() => {
  act(() => root?.unmount());
  client.clear();
});

test("an empty chat says before the first question that its model server is gone, and what to do", () => {
  client.setQueryData(healthQuery.queryKey, health(false));

  const place = shown("page");

  expect(place.textContent).toContain("llama does not answer now.");
  expect(place.querySelector('[role="status"]')?.textContent).toContain(REASON + FIX);
  expect(questions(place).every((each) => each.disabled)).toBe(true);
  expect(place.querySelector(".now")?.textContent).toContain("No model answers");
});

test("it is taken back when health has heard the server again, and the models are asked for again", async () => {
  client.setQueryData(healthQuery.queryKey, health(false));
  const place = shown("page");
  const before = vi.mocked(fetch).mock.calls.length;

  await act(async () => {
    follow({ kind: "health", health: health(true) });
    await vi.waitFor(() => expect(place.textContent).toContain("llama answers."));
  });

  expect(place.querySelector('[role="status"]')).toBeNull();
  expect(questions(place).some((each) => each.disabled)).toBe(false);
  expect(place.querySelector(".now")?.textContent).toContain("llama");
  const asked = vi.mocked(fetch).mock.calls.slice(before).map(([url]) => String(url));
  expect(asked.some((url) => url.endsWith("/api/models"))).toBe(true);
});

test("the embedded model that loads is waited for, not repaired", () => {
  client.setQueryData(healthQuery.queryKey, health(false));

  expect(shown("embedded").querySelector('[role="status"]')?.textContent).not.toContain(FIX);
});

test("while all is well the connection is not asked for beside the welcome", () => {
  client.setQueryData(healthQuery.queryKey, health(true));
  client.setQueryData(modelsQuery.queryKey, { models: ["llama"], defaultModel: "llama", known: true, note: "", contextWindows: {} });

  rendered(<ModelNotice />);

  expect(client.isFetching({ queryKey: connectionQuery.queryKey })).toBe(0);
});

test("a server that only refuses to list its models is no trouble", () => {
  client.setQueryData(healthQuery.queryKey, health(true));

  expect(shown("environment", false).querySelector('[role="status"]')).toBeNull();
});
