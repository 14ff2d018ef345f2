// @vitest-environment happy-dom
import { act, useRef } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { usePaced } from "./usePaced";

let place: HTMLElement;
let now = 0;
let takes = 0;

function Drawn({ text, isGrowing }: { text: string; isGrowing: boolean }) {
  const root = useRef<HTMLParagraphElement>(null);
  const drawn = usePaced(text, isGrowing, root);
  if (drawn !== place.textContent) now += takes;
  return <p ref={root}>{drawn}</p>;
}

function begin() {
  place = document.createElement("div");
  const root = createRoot(place);
  return (text: string, isGrowing: boolean) => act(() => root.render(<Drawn text={text} isGrowing={isGrowing} />));
}

function wait(ms: number) {
  now += ms;
  act(() => void vi.advanceTimersByTime(ms));
}

beforeEach(() => {
  (globalThis as { IS_REACT_ACT_ENVIRONMENT?: boolean }).IS_REACT_ACT_ENVIRONMENT = true;
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  vi.spyOn(performance, "now").mockImplementation(() => now);
});

afterEach(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
});

test("what is drawn quickly is drawn whenever it grows", () => {
  takes = 1;
  const draw = begin();
  for (const text of ["a", "ab", "abc"]) {
    draw(text, true);
    expect(place.textContent).toBe(text);
    wait(33);
  }
});

test("after a slow drawing the page rests, and then draws the newest text", () => {
  takes = 100;
  const draw = begin();
  draw("a", true);

  for (const text of ["ab", "abc", "abcd"]) {
    wait(33);
    draw(text, true);
    expect(place.textContent).toBe("a");
  }
  wait(300);

  expect(place.textContent).toBe("abcd");
});

test("the whole text is drawn at once when it has ended", () => {
  takes = 100;
  const draw = begin();
  draw("a", true);

  draw("ab", false);

  expect(place.textContent).toBe("ab");
});
