import { expect, test } from "vitest";
import type { SkillView } from "../contracts";
import { type Chosen, changedBy, readSkills } from "./importing";
import { crc32, zip } from "./zip";

const LOG = "---\nname: read-a-log\ndescription: Reads logs.\n---\nLook.\n";
const file = (path: string, text = "", size = text.length): Chosen => ({ path, size, text: async () => text });

test("a folder may hold several skills, each with its texts; what has no place is told", async () => {
  const found = await readSkills([
    file("skills/read-a-log/SKILL.md", LOG),
    file("skills/read-a-log/references/api/errors.md", "E"),
    file("skills/read-a-log/scripts/run.sh"),
    file("skills/read-a-log/.DS_Store"),
    file("skills/broken/SKILL.md", "no front matter"),
    file("skills/large/SKILL.md", LOG.replace("read-a-log", "large")),
    file("skills/large/references/a.md", "", 400_001),
  ]);

  expect(found.map(({ place, fields, problem, leftOut }) => [place, fields?.references, problem?.slice(0, 30) ?? null, leftOut])).toEqual([
    ["skills/read-a-log", { "api/errors.md": "E" }, null, ["scripts/run.sh"]],
    ["skills/broken", undefined, "SKILL.md does not begin with f", []],
    ["skills/large", undefined, "references/a.md is too large: ", []],
  ]);
});

test("a file alone is a skill, whatever it is called, and what breaks a bound is told by its field", async () => {
  const [found] = await readSkills([file("log.md", LOG)]);
  const [misnamed] = await readSkills([file("SKILL.md", LOG.replace("read-a-log", "Read a log"))]);

  expect(found?.fields?.instructions).toBe("Look.");
  expect(misnamed?.problem).toMatch(/^name: /);
  await expect(readSkills([file("a/readme.md"), file("a/b.md")])).rejects.toThrow("no SKILL.md");
});

test("an import changes what the folder says, and nothing else", async () => {
  const [found] = await readSkills([file("SKILL.md", LOG)]);
  const stored = { ...found?.fields, references: { "a.md": "A" }, provenance: "home", enabled: false, id: "s", revision: 2 } as unknown as SkillView;

  expect(found?.fields && changedBy(found.fields, stored)).toEqual(["references"]);
});

test("an archive has the check sums that others look at", async () => {
  const archive = new Uint8Array(await zip({ "a/ü.md": "123456789" }).arrayBuffer());

  expect(crc32(new TextEncoder().encode("123456789"))).toBe(0xcbf43926);
  expect([...archive.slice(0, 4)]).toEqual([0x50, 0x4b, 3, 4]);
  expect(new TextDecoder().decode(archive)).toContain("a/ü.md123456789");
});
