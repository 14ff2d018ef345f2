import { expect, test } from "vitest";
import { split } from "./Marked";
import { type Message, isFailureText, textOf, toolCall, withNewest } from "./messages";

const said = (id: string, text = id): Message => ({ id, role: "user", parts: [{ type: "text", text }] });

test("the newest page goes over what is shown, and older messages stay where it continues them", () => {
  const shown = [said("1"), said("2"), said("3", "growing")];

  expect(withNewest(shown, [said("2"), said("3", "done"), said("4")])).toEqual({
    messages: [said("1"), said("2"), said("3", "done"), said("4")],
    continues: true,
  });
  expect(withNewest(shown, [said("8"), said("9")])).toEqual({ messages: [said("8"), said("9")], continues: false });
  expect(withNewest([], [])).toEqual({ messages: [], continues: false });
});

test("the sentence that the stamp says is not said twice", () => {
  const failure = { type: "text" as const, text: "It failed.", providerMetadata: { popagent: { failure: true } } };
  const message: Message = { id: "a", role: "assistant", parts: [{ type: "text", text: "half" }, failure] };

  expect(isFailureText(failure)).toBe(true);
  expect(textOf(message)).toBe("half");
});

test("a tool call reads the same in both shapes of the wire", () => {
  const rest = { toolCallId: "c", state: "output-available" as const, input: { path: "a" }, output: "b" };
  const own = toolCall({ type: "tool-read", ...rest, toolMetadata: { durationMs: 12 } } as never);
  const dynamic = toolCall({ type: "dynamic-tool", toolName: "read", ...rest } as never);

  expect(own).toMatchObject({ name: "read", input: { path: "a" }, output: "b", durationMs: 12, error: null });
  expect(dynamic).toMatchObject({ name: "read", durationMs: null });
  expect(toolCall({ type: "step-start" })).toBeNull();
});

test("the arguments of a call that failed are shown where either version of the client keeps them", () => {
  const failed = { type: "tool-read", toolCallId: "c", state: "output-error" as const, errorText: "no" };

  expect(toolCall({ ...failed, rawInput: { path: "a" } } as never)?.input).toEqual({ path: "a" });
  expect(toolCall({ ...failed, input: { path: "a" } } as never)?.input).toEqual({ path: "a" });
});

test("searched words are marked without case and accents, in any script", () => {
  const marked = (text: string, words: string) =>
    split(text, words)
      .map((piece) => (piece.hit ? `[${piece.text}]` : piece.text))
      .join("");

  expect(marked("Der Übermut, übermütig", "uber MUT")).toBe("Der [Übermut], [übermüt]ig");
  expect(marked("日本語の文書", "文書")).toBe("日本語の[文書]");
  expect(marked("a👍b ß", "b")).toBe("a👍[b] ß");
  expect(marked("nothing here", "")).toBe("nothing here");
  expect(marked("İstanbul", "stan")).toBe("İ[stan]bul");
});
