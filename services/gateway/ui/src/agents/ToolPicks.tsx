import { useId } from "react";
import type { ToolView } from "../contracts";
import { Icon } from "../ui/Icon";

const ACCESS: Record<ToolView["access"], string> = { read: "reads", write: "changes things", exec: "runs programs" };

/** The tools an agent has, in its order, then those that it could have. */
export function ToolPicks({ chosen, tools, labelledBy, onChange }: { chosen: string[]; tools: ToolView[]; labelledBy: string; onChange: (names: string[]) => void }) {
  const known = new Map(tools.map((tool) => [tool.name, tool]));
  const others = tools.filter((tool) => !chosen.includes(tool.name));
  const raise = (index: number) => {
    const next = [...chosen];
    next.splice(index - 1, 2, ...chosen.slice(index - 1, index + 1).reverse());
    onChange(next);
  };
  const rows = [...chosen.map((name, index) => ({ name, index })), ...others.map(({ name }) => ({ name, index: -1 }))];
  return (
    <ul className="card picks" aria-labelledby={labelledBy}>
      {rows.map(({ name, index }) => (
        // One that is named twice, as no edit leaves it, needs two keys.
        <li key={chosen.indexOf(name) === index ? name : `${name} ${index}`}>
          <Pick
            name={name}
            tool={known.get(name)}
            isChosen={index >= 0}
            onChange={() => onChange(index >= 0 ? chosen.filter((_, each) => each !== index) : [...chosen, name])}
          />
          {index > 0 && (
            <button type="button" className="btn plain dense square" aria-label={`Move ${name} up`} onClick={() => raise(index)}>
              <Icon name="up" />
            </button>
          )}
        </li>
      ))}
    </ul>
  );
}

function Pick({ name, tool, isChosen, onChange }: { name: string; tool: ToolView | undefined; isChosen: boolean; onChange: () => void }) {
  const id = useId();
  return (
    <label className="check grow">
      <input type="checkbox" checked={isChosen} aria-label={name} aria-describedby={id} onChange={onChange} />
      <span className="section-name" id={id}>
        <span className="line">
          <span className="mono strong">{name}</span>
          {tool ? <span className={`chip ${tool.access === "read" ? "" : "wait"}`}>{ACCESS[tool.access]}</span> : <span className="chip fail">does not exist</span>}
        </span>
        {tool && <span className="xs dim cut">{tool.description}</span>}
      </span>
    </label>
  );
}
