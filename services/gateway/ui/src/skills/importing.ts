import { ApiError, api } from "../api/client";
import type { SkillFields, SkillView } from "../contracts";
import { errors, formOf } from "./form";
import { keepSkill, pathOf } from "./queries";

/** A file that a person chose, with its path in the folder that was chosen; of a file alone that is its name. */
export interface Chosen {
  path: string;
  size: number;
  text: () => Promise<string>;
}

/** A skill that was found among files; with `problem` it cannot be stored as it is. */
export interface Found {
  /** Where it lies, for people. */
  place: string;
  fields: SkillFields | null;
  problem: string | null;
  /** What lies beside it or stands in its front matter, and has no place in a skill. */
  leftOut: string[];
}

const FILE = "SKILL.md";
const REFERENCES = "references/";
const MOST_FILES = 2_000;
// What file managers leave behind.
const LITTER = /(^|\/)(\.DS_Store|Thumbs\.db|desktop\.ini|\.git\/.*)$/;
// UTF-8 takes up to four bytes a character.
const LARGEST_BYTES = 400_000;

/** Read every skill among the files: a SKILL.md, and the texts below references/ beside it. */
export async function readSkills(files: readonly Chosen[]): Promise<Found[]> {
  if (files.length > MOST_FILES) throw new Error(`These are ${files.length.toLocaleString()} files. Choose the folder of the skill itself.`);
  const roots = files.filter(({ path }) => path === FILE || path.endsWith(`/${FILE}`) || (files.length === 1 && path.endsWith(".md")));
  if (roots.length === 0) throw new Error(`There is no ${FILE} among what was chosen.`);
  return Promise.all(roots.map((root) => read(root, files)));
}

async function read(root: Chosen, files: readonly Chosen[]): Promise<Found> {
  const folder = root.path.slice(0, root.path.lastIndexOf("/") + 1);
  const beside = files.filter(({ path }) => path !== root.path && path.startsWith(folder) && !LITTER.test(path)).map((file) => ({ ...file, path: file.path.slice(folder.length) }));
  const isReference = ({ path }: Chosen) => path.startsWith(REFERENCES);
  const leftOut = beside.filter((file) => !isReference(file)).map(({ path }) => path);
  const place = folder.replace(/\/$/, "") || root.path;
  try {
    // It brings a parser of YAML, which nobody else needs.
    const { parseSkill } = await import("./skillFile");
    const { fields, unknown } = parseSkill(await textOf(root));
    const references: Record<string, string> = {};
    for (const file of beside.filter(isReference)) references[file.path.slice(REFERENCES.length)] = await textOf(file);
    const skill: SkillFields = { ...fields, references, provenance: null, enabled: true };
    const [problem] = Object.entries(errors(formOf(skill))).map(([field, words]) => `${field}: ${words}`);
    return { place, fields: skill, problem: problem ?? null, leftOut: [...leftOut, ...unknown.map((key) => `${key} of the front matter`)] };
  } catch (error) {
    return { place, fields: null, problem: (error as Error).message, leftOut };
  }
}

async function textOf(file: Chosen): Promise<string> {
  if (file.size > LARGEST_BYTES) throw new Error(`${file.path} is too large: ${file.size.toLocaleString()} bytes.`);
  try {
    return await file.text();
  } catch {
    throw new Error(`${file.path} is no text in UTF-8.`);
  }
}

/** What a browser gives for files that were chosen. */
export function chosen(files: FileList): Chosen[] {
  return [...files].map((file) => ({
    path: file.webkitRelativePath || file.name,
    size: file.size,
    text: async () => new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer()),
  }));
}

const OF_THE_FOLDER = ["description", "instructions", "references", "license", "compatibility", "allowedTools", "metadata"] as const;

/** Which fields an import changes of the stored skill of this name. */
export function changedBy(fields: SkillFields, stored: SkillView): (typeof OF_THE_FOLDER)[number][] {
  const [before, after] = [formOf(stored), formOf(fields)];
  return OF_THE_FOLDER.filter((field) => JSON.stringify(before[field]) !== JSON.stringify(after[field]));
}

/** Store a skill, or change the one of its name, which stays enabled or disabled; return why it was refused. */
export async function store(agentId: string, fields: SkillFields, stored: SkillView | undefined): Promise<string | null> {
  try {
    if (!stored) keepSkill(await api.post<SkillView>(`/api/agents/${agentId}/skills`, fields));
    else {
      const values = changedBy(fields, stored).map((field) => [field, fields[field]]);
      if (values.length > 0) keepSkill(await api.patch<SkillView>(pathOf(stored), { revision: stored.revision, ...Object.fromEntries(values) }));
    }
    return null;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    return error.code === "revision_conflict" ? "Somebody changed it meanwhile. Import it again." : error.message;
  }
}
