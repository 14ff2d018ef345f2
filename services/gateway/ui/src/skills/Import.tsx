import { useMutation } from "@tanstack/react-query";
import { type ChangeEvent, useId, useRef, useState } from "react";
import { sentence } from "../api/client";
import type { AgentView, SkillFields, SkillView } from "../contracts";
import { Dialog } from "../ui/Dialog";
import { Icon } from "../ui/Icon";
import { say } from "../ui/toasts";
import { visible } from "../ui/visible";
import { plural } from "../ui/words";
import { LABELS } from "./form";
import { type Found, changedBy, chosen, readSkills, store } from "./importing";

/** A skill that was found, and what importing it does. */
interface Planned extends Found {
  stored: SkillView | undefined;
  /** Null when it is new. */
  changed: string[] | null;
}

/** Choose a SKILL.md or a folder, see what is in it, store it. */
export function Import({ agent, stored, onClose }: { agent: AgentView; stored: SkillView[]; onClose: () => void }) {
  const [planned, setPlanned] = useState<Planned[] | null>(null);
  const [trouble, setTrouble] = useState("");
  const [refused, setRefused] = useState<Record<string, string>>({});
  const choose = async (event: ChangeEvent<HTMLInputElement>) => {
    const { files } = event.target;
    if (!files || files.length === 0) return;
    setTrouble("");
    setRefused({});
    try {
      const found = await readSkills(chosen(files));
      setPlanned(
        found.map((each) => {
          const same = stored.find((skill) => skill.name === each.fields?.name);
          const isTwice = found.some((other) => other !== each && other.fields && other.fields.name === each.fields?.name);
          const problem = each.problem ?? (isTwice ? "Another one has the same name." : null);
          return { ...each, problem, stored: same, changed: same && each.fields ? changedBy(each.fields, same).map((field) => LABELS[field].toLowerCase()) : null };
        }),
      );
    } catch (error) {
      setPlanned(null);
      setTrouble(sentence(error));
    }
    // The same may be chosen again, once it was mended.
    event.target.value = "";
  };
  const wanted = planned?.filter((each) => each.fields && !each.problem && each.changed?.length !== 0) ?? [];
  const save = useMutation({
    mutationFn: async () => {
      const why: Record<string, string> = {};
      for (const each of wanted) {
        const reason = await store(agent.id, each.fields as SkillFields, each.stored);
        if (reason) why[each.place] = reason;
      }
      return why;
    },
    onSuccess: (why) => {
      const done = wanted.length - Object.keys(why).length;
      if (done > 0) say(`${plural(done, "skill")} imported. The next run of ${agent.name} has ${done === 1 ? "it" : "them"}.`);
      if (Object.keys(why).length === 0) return onClose();
      setRefused(why);
      setPlanned((before) => before?.filter((each) => why[each.place] !== undefined) ?? null);
    },
  });
  return (
    <Dialog label="Import skills" onClose={onClose}>
      <div className="inside">
        <h2>Import skills for {agent.name}</h2>
        <p className="small dim">
          A skill is a folder with a <code>SKILL.md</code> and texts below <code>references/</code>. Choose one, a folder of several,
          or a <code>SKILL.md</code> alone. What is chosen is shown before it is stored.
        </p>
        <div className="line wrap">
          <Chooser label="Choose a folder" isFolder onChange={(event) => void choose(event)} />
          <Chooser label="Choose a SKILL.md" isFolder={false} onChange={(event) => void choose(event)} />
        </div>
        {(trouble || save.error) && (
          <p className="is-fail small" role="alert">
            {trouble || sentence(save.error)}
          </p>
        )}
        {planned && (
          <ul className="card picks planned" aria-label="What was found">
            {planned.map((each) => (
              <li key={each.place}>
                <Plan planned={each} refused={refused[each.place]} />
              </li>
            ))}
          </ul>
        )}
        <div className="actions">
          <button type="button" className="btn" onClick={onClose}>
            {planned ? "Cancel" : "Close"}
          </button>
          {planned && (
            <button type="button" className="btn primary" disabled={wanted.length === 0 || save.isPending} onClick={() => save.mutate()}>
              {save.isPending ? "Importing…" : wanted.length === 0 ? "Nothing to import" : `Import ${plural(wanted.length, "skill")}`}
            </button>
          )}
        </div>
      </div>
    </Dialog>
  );
}

function Chooser({ label, isFolder, onChange }: { label: string; isFolder: boolean; onChange: (event: ChangeEvent<HTMLInputElement>) => void }) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" className="btn" aria-describedby={id} onClick={() => input.current?.click()}>
        <Icon name={isFolder ? "folder" : "copy"} />
        {label}
      </button>
      <input
        id={id}
        ref={input}
        type="file"
        hidden
        aria-label={label}
        {...(isFolder ? { webkitdirectory: "" } : { accept: ".md,text/markdown" })}
        onChange={onChange}
      />
    </>
  );
}

function Plan({ planned: { place, fields, problem, leftOut, changed }, refused }: { planned: Planned; refused: string | undefined }) {
  const references = Object.keys(fields?.references ?? {}).length;
  const why = refused ?? problem;
  return (
    <div className="section-name">
      <span className="line wrap">
        <span className="strong mono">{visible(fields?.name || place)}</span>
        {why ? (
          <span className="chip fail">cannot be stored</span>
        ) : changed === null ? (
          <span className="chip live">new</span>
        ) : (
          <span className="chip">{changed.length === 0 ? "the same as stored" : "changes the stored one"}</span>
        )}
        {references > 0 && <span className="xs faint">{plural(references, "reference")}</span>}
      </span>
      {why && (
        <span className="small is-fail" role="alert">
          {visible(why)}
        </span>
      )}
      {!why && fields && <span className="xs dim skill-about">{visible(fields.description)}</span>}
      {!why && changed !== null && changed.length > 0 && <span className="xs is-wait">Changes {changed.join(", ")}.</span>}
      {leftOut.length > 0 && (
        <span className="xs faint">
          Left out: {visible(leftOut.slice(0, 5).join(", "))}
          {leftOut.length > 5 && ` and ${leftOut.length - 5} more`}
        </span>
      )}
    </div>
  );
}
