import { Link, useLocation } from "wouter";
import type { HookList } from "../contracts";
import { CopyButton } from "../ui/CopyButton";
import { Coded } from "../ui/Coded";
import { Icon } from "../ui/Icon";
import { setDraft, useDrafts } from "./draftStore";
import { BLANK, type HookForm, NEW, putAll } from "./form";

const EXAMPLE = `#!/usr/bin/python3
import json
import sys


def below_docs(path):
    # What was cut ends in an ellipsis.
    return path.startswith("docs/") and ".." not in path and not path.endswith("…")


given = json.load(sys.stdin)["input"]["arguments"]
paths = [given[name] for name in ("path", "new_path") if name in given]
if not paths or not all(map(below_docs, paths)):
    reason = "Only files below docs/ may be changed, and not by commands."
    print(json.dumps({"decision": "deny", "reason": reason}))
`;

const BEGUN: Partial<HookForm> = { name: "Docs only", kind: "command", argv: "/hooks/docs-only.py", matcher: "write|edit|delete|move|mkdir|shell.*" };

/** Where there is none: what a hook is, and one whole example. */
export function Explained({ places }: { places: HookList }) {
  const [, navigate] = useLocation();
  const isBegun = useDrafts()[NEW] !== undefined;
  const begin = () => {
    setDraft(NEW, (before) => putAll(before, BEGUN, BLANK));
    navigate(`/settings/hooks/${NEW}`);
  };
  return (
    <>
      <div className="empty explained">
        <h2>No hook yet.</h2>
        <p>
          A hook is a program or a server of yours that popagent calls at certain moments: before a tool is used, before work is
          handed on, before an answer ends, after a chat was deleted. It may refuse what has not happened yet, and is told the rest.
          A refusal is final, and every call is kept with its chat.
        </p>
        <Link href={`/settings/hooks/${NEW}`} className="btn primary">
          <Icon name="plus" />
          {isBegun ? "Go on with the new hook" : "New hook"}
        </Link>
      </div>
      <section className="settings-group">
        <h2>An example: nobody writes outside of docs/</h2>
        <p className="small dim">
          Save this as <code>docs-only.py</code>, executable, in the folder that <code>POPAGENT_HOOK_FOLDER</code> names. It runs
          confined, without a network; nothing has to be started. A command can change any file, so that none may be run.
        </p>
        <pre className="well" tabIndex={0} aria-label="docs-only.py">
          {EXAMPLE}
        </pre>
        {places.commandsProblem !== null && (
          <div className="remark wait">
            <Icon name="alert" />
            <p className="grow">
              <Coded text={`Programs cannot be hooks here yet. ${places.commandsProblem}`} />
            </p>
          </div>
        )}
        <div className="line">
          {!isBegun && (
            <button type="button" className="btn" onClick={begin}>
              Begin with this example
            </button>
          )}
          <CopyButton text={EXAMPLE} label="Copy the program" />
        </div>
      </section>
    </>
  );
}
