import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";

// A late chunk's style stays when its screen is left: a class that two sheets define would change what is shown then.
test("no class is defined by two sheets", () => {
  const root = join(import.meta.dirname, "..");
  const sheets = readdirSync(root, { recursive: true, encoding: "utf-8" }).filter((name) => name.endsWith(".css"));
  const definedIn = new Map<string, Set<string>>();
  for (const sheet of sheets) {
    const css = readFileSync(join(root, sheet), "utf-8").replace(/\/\*[\s\S]*?\*\/|\([^()]*\)/g, "");
    for (const [, selectors = ""] of css.matchAll(/([^{}@;]+)\{/g)) {
      for (const selector of selectors.split(",")) {
        const plain = /^(?:[a-z]+)?\.([\w-]+)(?::[\w-]+)*$/.exec(selector.trim())?.[1];
        if (plain) definedIn.set(plain, (definedIn.get(plain) ?? new Set()).add(sheet));
      }
    }
  }
  expect(sheets.length).toBeGreaterThan(4);
  expect([...definedIn].filter(([, where]) => where.size > 1).map(([name, where]) => [name, ...where])).toEqual([]);
});
