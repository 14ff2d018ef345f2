import type { SkillView } from "../contracts";
import { attempt } from "../ui/attempt";
import { saveFile } from "../ui/saveFile";
import { zip } from "./zip";

/** Hand skills to the browser as they lie in folders: one without references as its SKILL.md, all else in an archive. */
export function exportSkills(skills: readonly SkillView[], name: string): Promise<void> {
  return attempt(
    (async () => {
      // It brings a parser of YAML, which nobody else needs.
      const { renderSkill } = await import("./skillFile");
      const [only] = skills;
      if (only && skills.length === 1 && Object.keys(only.references).length === 0) {
        return saveFile(new Blob([renderSkill(only)], { type: "text/markdown" }), "SKILL.md");
      }
      const files = skills.flatMap((skill) => [
        [`${skill.name}/SKILL.md`, renderSkill(skill)],
        ...Object.entries(skill.references).map(([path, text]) => [`${skill.name}/references/${path}`, text]),
      ]);
      saveFile(zip(Object.fromEntries(files) as Record<string, string>), `${name}.zip`);
    })(),
  );
}
