import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Link } from "wouter";
import { connectionQuery, modelsQuery, workspacesQuery } from "../app/queries";
import type { ModelsView, WorkspaceRow } from "../contracts";
import { Icon, Logo } from "../ui/Icon";
import { useModelTrouble } from "./modelTrouble";
import "./welcome.css";

const QUESTIONS = [
  // A small model does better when it is told where to look.
  "What does this project do? Read the README.",
  "How is it started and tested? Read the README.",
  "Which files and folders are at its root?",
];

/** Where an empty chat begins: what this is, which model answers, what it reads, and three questions to begin with. */
export function Welcome({
  onAsk,
  workspaceId = null,
}: {
  onAsk: (text: string) => void;
  /** The workspace of the chat that is begun; null is the default one. */
  workspaceId?: string | null;
}) {
  const models = useQuery(modelsQuery);
  const workspaces = useQuery(workspacesQuery);
  const items = workspaces.data?.items ?? [];
  const workspace = items.find((each) => each.id === workspaceId) ?? items.find((each) => each.isDefault) ?? items[0];
  const canAsk = useModelTrouble() === null;
  return (
    <section className="welcome" aria-labelledby="welcome-title">
      <Logo />
      <h2 id="welcome-title">This is popagent.</h2>
      <p className="dim">
        Agents of your own: they read the project below, answer with what they found there and change its files when
        you ask for it, also while this page is closed.
      </p>
      <dl className="welcome-facts">
        <ModelFact models={models.data} />
        <WorkspaceFact workspace={workspace} known={workspaces.data !== undefined} />
      </dl>
      <div className="welcome-asks">
        <h3>To begin with</h3>
        <ul>
          {QUESTIONS.map((question) => (
            <li key={question}>
              <button type="button" disabled={!canAsk} onClick={() => onAsk(question)}>
                <span className="grow">{question}</span>
                <Icon name="right" />
              </button>
            </li>
          ))}
        </ul>
        {!canAsk && <p className="small dim">They can be asked once a model answers.</p>}
      </div>
    </section>
  );
}

function Fact({ name, icon, children }: { name: string; icon: "model" | "folder"; children: ReactNode }) {
  return (
    <div>
      <dt>
        <Icon name={icon} />
        {name}
      </dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Which model answers, and what that means for the answers. */
function ModelFact({ models }: { models: ModelsView | undefined }) {
  const connection = useQuery(connectionQuery);
  const trouble = useModelTrouble();
  const view = connection.data;
  const link = (text: string) => (
    <Link href="/settings/models" className="link">
      {text}
    </Link>
  );
  if (!models || (!view && connection.isPending)) return <Fact name="Model" icon="model">Asking…</Fact>;
  const name = models.defaultModel ?? models.models[0] ?? view?.model;
  if (trouble && name && view?.source !== "none") {
    return (
      <Fact name="Model" icon="model">
        <b className="strong">{name}</b> <b className="strong is-wait">does not answer now.</b> {link("Connect another")}
      </Fact>
    );
  }
  if (trouble || view?.source === "none") {
    return (
      <Fact name="Model" icon="model">
        <b className="strong is-wait">None answers yet.</b> {link("Connect a model")}
      </Fact>
    );
  }
  return (
    <Fact name="Model" icon="model">
      <b className="strong">{name}</b>
      {view?.source === "embedded" ? (
        <>
          , which comes with popagent. {view.embedded.note} {link("Connect another")}
        </>
      ) : (
        <> answers. {link("Choose another")}</>
      )}
    </Fact>
  );
}

function WorkspaceFact({ workspace, known }: { workspace: WorkspaceRow | undefined; known: boolean }) {
  const link = (
    <Link href="/settings/workspaces" className="link">
      Register another
    </Link>
  );
  if (!workspace) {
    return (
      <Fact name="Workspace" icon="folder">
        {known ? (
          <>
            <b className="strong is-wait">None is registered.</b>{" "}
            <Link href="/settings/workspaces" className="link">
              Register a folder
            </Link>
          </>
        ) : (
          "Asking…"
        )}
      </Fact>
    );
  }
  return (
    <Fact name="Workspace" icon="folder">
      <b className="strong">{workspace.name}</b>
      {workspace.exists ? (
        <>
          , the folder <code>{workspace.path}</code>
          {workspace.branch && (
            <>
              {" "}
              on branch <code>{workspace.branch}</code>
            </>
          )}
          . {link}
        </>
      ) : (
        <>
          . <span className="is-fail">Its folder is missing.</span> {link}
        </>
      )}
    </Fact>
  );
}
