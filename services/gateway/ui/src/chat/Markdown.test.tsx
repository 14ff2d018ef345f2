// @vitest-environment happy-dom
import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, expect, test, vi } from "vitest";
import Markdown from "./Markdown";

afterEach(() => vi.restoreAllMocks());

test("a paragraph that is complete is not parsed again while the text after it grows", () => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  vi.spyOn(performance, "now").mockReturnValue(0); // nothing takes so long that it is drawn less often
  const tried: string[] = [];
  const real = RegExp.prototype.test;
  // Every parsing of a link asks once more whether its address is harmless.
  vi.spyOn(RegExp.prototype, "test").mockImplementation(function (this: RegExp, text: string) {
    if (text === "https://station.example/") tried.push(text);
    return real.call(this, text);
  });
  const place = document.createElement("div");
  const root = createRoot(place);
  const start = "See [the station](https://station.example/).\n\nIt";
  act(() => root.render(<Markdown text={start} isGrowing />));
  const first = tried.length;

  for (let words = 1; words <= 20; words++) {
    act(() => root.render(<Markdown text={start + " rains".repeat(words)} isGrowing />));
  }

  expect(place.querySelector("a")?.getAttribute("href")).toBe("https://station.example/");
  expect(place.textContent).toContain("It rains rains");
  expect(first).toBeGreaterThan(0);
  expect(tried.length).toBe(first);
});

test("tasks of this page are led to within it, other places of it and of nobody knows where are not", () => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  const place = document.createElement("div");
  const root = createRoot(place);
  const text = "[Task: Count](/tasks/t-1) [a](/api/jobs) [b](//station.example/tasks/x) [c](/tasks/../api/jobs) [d](javascript:alert)";

  act(() => root.render(<Markdown text={text} isGrowing={false} />));

  const links = [...place.querySelectorAll("a")];
  expect(links.map((link) => [link.textContent, link.getAttribute("href"), link.target])).toEqual([["Task: Count", "/tasks/t-1", ""]]);
});
