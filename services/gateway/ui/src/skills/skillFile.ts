import { parseDocument, stringify } from "yaml";
import type { SkillFields } from "../contracts";

/** Key of the standard → field on the wire. */
const KEYS = {
  name: "name",
  description: "description",
  license: "license",
  compatibility: "compatibility",
  "allowed-tools": "allowedTools",
  metadata: "metadata",
} as const;

// Longer front matter is none; the parser takes its time with what is nested deep.
const LONGEST_FRONT_MATTER = 20_000;
const FENCE = /^---[ \t]*$/m;

/** What a SKILL.md holds, and the keys of its front matter that have no place here. */
export interface SkillFile {
  fields: Omit<SkillFields, "references" | "provenance" | "enabled">;
  unknown: string[];
}

/** Read a SKILL.md; what is wrong is thrown as a sentence. */
export function parseSkill(text: string): SkillFile {
  const whole = text.replace(/^\ufeff/, "").replaceAll("\r\n", "\n");
  const opening = FENCE.exec(whole);
  const closing = opening?.index === 0 ? FENCE.exec(whole.slice(opening[0].length)) : null;
  if (!opening || !closing) throw new Error("SKILL.md does not begin with front matter between two lines of ---.");
  const front = whole.slice(opening[0].length, opening[0].length + closing.index);
  if (front.length > LONGEST_FRONT_MATTER) throw new Error("The front matter of SKILL.md is too long.");
  const found = mapping(front);
  const value = (key: keyof typeof KEYS) => textOf(key, found[key]);
  const metadata = found["metadata"] ?? {};
  if (typeof metadata !== "object" || Array.isArray(metadata)) throw new Error("metadata of the front matter is not a list of keys and values.");
  return {
    fields: {
      name: value("name") ?? "",
      description: value("description")?.replace(/^\n+|\n+$/g, "") ?? "",
      instructions: whole.slice(opening[0].length + closing.index + closing[0].length).replace(/^\n+|\n+$/g, ""),
      license: value("license"),
      compatibility: value("compatibility"),
      allowedTools: value("allowed-tools"),
      metadata: Object.fromEntries(Object.entries(metadata).map(([key, each]) => [key, plain(`metadata.${key}`, each)])),
    },
    unknown: Object.keys(found).filter((key) => !(key in KEYS)),
  };
}

/** Every scalar is the text that was written. An alias could stand for a million others: none is followed. */
function mapping(front: string): Record<string, unknown> {
  let found: unknown;
  try {
    const document = parseDocument(front, { schema: "failsafe", uniqueKeys: true });
    const [error] = document.errors;
    if (error) throw error;
    found = document.toJS({ maxAliasCount: 0 });
  } catch (error) {
    const [first = ""] = String((error as Error).message).split("\n");
    const reason = error instanceof ReferenceError ? "it uses aliases, and each value must be written out" : first.replace(/[:.]$/, "");
    throw new Error(`The front matter of SKILL.md cannot be read: ${reason}. A value with a colon needs quotes around it.`);
  }
  if (found === null || typeof found !== "object" || Array.isArray(found)) throw new Error("The front matter of SKILL.md is not a list of keys and values.");
  return found as Record<string, unknown>;
}

/** The value as its field takes it; some write allowed-tools as a list. */
function textOf(key: keyof typeof KEYS, value: unknown): string | null {
  if (key === "allowed-tools" && Array.isArray(value)) return value.map((each) => plain(key, each)).join(" ");
  return value === undefined || value === "" || value === "~" || value === "null" ? null : plain(key, value);
}

function plain(key: string, value: unknown): string {
  if (typeof value !== "string") throw new Error(`${key} of the front matter is no text.`);
  return value;
}

/** The SKILL.md that says the same; what is not set is not there. */
export function renderSkill(skill: SkillFile["fields"]): string {
  const front = Object.entries(KEYS).flatMap(([key, field]) => {
    const value = skill[field];
    const isSet = value !== null && value !== "" && (typeof value === "string" || Object.keys(value).length > 0);
    return isSet ? [[key, value] as const] : [];
  });
  return `---\n${stringify(Object.fromEntries(front), { lineWidth: 120 })}---\n\n${skill.instructions}\n`;
}
