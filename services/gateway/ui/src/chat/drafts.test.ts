// @vitest-environment happy-dom
import { beforeEach, expect, test } from "vitest";
import { draft, forgetDrafts, keepDraft, keepUnsure, settle } from "./drafts";

beforeEach(() => localStorage.clear());

test("words that may not have arrived are given back before what was written since, once", () => {
  localStorage.setItem("popagent.unsure.chat", "sent into nothing");
  keepDraft("chat", "written since");

  expect(draft("chat")).toBe("sent into nothing\n\nwritten since");
  keepDraft("chat", "");
  expect(draft("chat")).toBe("");
});

test("they are not given back while this page still finds out, nor when it is known", () => {
  keepUnsure("chat", "on its way");

  expect(draft("chat")).toBe("");
  settle("chat");
  expect(draft("chat")).toBe("");
});

test("they are forgotten with the drafts", () => {
  localStorage.setItem("popagent.unsure.chat", "sent into nothing");

  forgetDrafts();

  expect(draft("chat")).toBe("");
});
