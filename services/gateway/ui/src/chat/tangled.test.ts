import { expect, test } from "vitest";
import { isTangled } from "./tangled";

test("ordinary long answers are Markdown", () => {
  const answer = `# Title\n\n${"A paragraph with [a link](https://example.com) and `code`. ".repeat(20)}\n\n`.repeat(100);
  expect(isTangled(answer)).toBe(false);
});

test("a list of a thousand bold items is Markdown", () => {
  expect(isTangled("- **name**: value\n".repeat(1_000))).toBe(false);
});

test("code in a fence may hold any number of brackets", () => {
  expect(isTangled(`\`\`\`json\n${"[".repeat(20_000)}\n\`\`\`\n\ntext`)).toBe(false);
});

test("code whose fence is still open may, too: it does not change its looks when it is closed", () => {
  const text = `Here it is:\n\n\`\`\`json\n${'["a", [1, 2]],\n'.repeat(5_000)}`;
  expect(isTangled(text)).toBe(false);
  expect(isTangled(`${text}\`\`\`\n`)).toBe(false);
});

test.each([
  ["open brackets", "[".repeat(20_000)],
  ["links", "[a](".repeat(20_000)],
  ["emphasis", "~~a~~ ".repeat(20_000)],
  ["a deep list", Array.from({ length: 300 }, (_, depth) => `${"  ".repeat(depth)}- x`).join("\n")],
  ["a deep quote", `${">".repeat(2_000)} deep`],
  ["a paragraph of many lines", "line\n".repeat(20_000)],
  ["a huge table", `${"|a".repeat(300)}|\n`.repeat(60)],
])("%s are shown as they are written", (_, text) => {
  expect(isTangled(text)).toBe(true);
});

test("deciding takes linear time", () => {
  const unclosed = "```\n".repeat(50_000);
  const started = performance.now();
  isTangled(unclosed);
  isTangled("~~~~\n`".repeat(50_000));
  expect(performance.now() - started).toBeLessThan(5_000);
});
