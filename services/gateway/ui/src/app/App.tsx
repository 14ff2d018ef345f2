import { QueryClientProvider } from "@tanstack/react-query";
import { Component, type ReactNode, Suspense, lazy, useEffect } from "react";
import { Link, Redirect, Route, Switch, useLocation } from "wouter";
import { events } from "../api/events";
import { ChatScreen } from "../chat/ChatScreen";
import { KeyGate } from "./KeyGate";
import { Shell } from "./Shell";
import { client, follow } from "./queries";

const Agents = lazy(() => import("../agents/Agents"));
const Channels = lazy(() => import("../channels/Channels"));
const Observe = lazy(() => import("../observe/Observe"));
// One file: they have more in common than either has alone.
const Schedules = lazy(async () => ({ default: (await import("../tasks/screens")).Schedules }));
const Tasks = lazy(async () => ({ default: (await import("../tasks/screens")).Tasks }));
const Settings = lazy(() => import("../settings/Settings"));

export function App() {
  return (
    <QueryClientProvider client={client}>
      <KeyGate>
        <Follow />
        <Shell>
          <BrokenScreen>
            <Suspense fallback={null}>
              <Switch>
                <Route path="/">
                  <Redirect to="/chat" replace />
                </Route>
                <Route path="/chat/:id?">{({ id }) => <ChatScreen id={id ?? null} />}</Route>
                <Route path="/inbox">
                  <Tasks id={null} isInbox />
                </Route>
                <Route path="/tasks/:id?">{({ id }) => <Tasks id={id ?? null} />}</Route>
                <Route path="/schedules/:id?">{({ id }) => <Schedules id={id ?? null} />}</Route>
                <Route path="/channels/:id?/:thread?">{({ id, thread }) => <Channels id={id ?? null} thread={thread ?? null} />}</Route>
                <Route path="/agents/:place?/:part?/:item?">
                  {({ place, part, item }) => <Agents place={place ?? null} part={part ?? null} item={item ?? null} />}
                </Route>
                <Route path="/observe/*?">
                  <Observe />
                </Route>
                <Route path="/settings/:section?/:item?">
                  {({ section, item }) => <Settings section={section ?? null} item={item ?? null} />}
                </Route>
                <Route>
                  <main className="main">
                    <div className="empty">
                      <h2>There is no page here</h2>
                      <p>The address may be from another version.</p>
                      <Link href="/chat" className="btn">
                        Open the chats
                      </Link>
                    </div>
                  </main>
                </Route>
              </Switch>
            </Suspense>
          </BrokenScreen>
        </Shell>
      </KeyGate>
    </QueryClientProvider>
  );
}

/** The one event stream of the tab keeps every list up to date. */
function Follow() {
  useEffect(() => {
    const off = events.hear(follow);
    const stop = events.start();
    return () => {
      stop();
      off();
    };
  }, []);
  return null;
}

/** A defect of one screen is said there; the others go on. */
function BrokenScreen({ children }: { children: ReactNode }) {
  const [location] = useLocation();
  return <Broken key={location.split("/")[1]}>{children}</Broken>;
}

class Broken extends Component<{ children: ReactNode }, { error: Error | null }> {
  override state = { error: null as Error | null };

  static getDerivedStateFromError(error: Error) {
    return { error };
  }

  override render() {
    const { error } = this.state;
    if (!error) return this.props.children;
    // A new version was installed while this tab was open: its files are gone.
    const isOld = /dynamically imported module|Importing a module/.test(error.message);
    return (
      <main className="main">
        <div className="empty" role="alert">
          <h2>{isOld ? "popagent was updated" : "This screen stopped"}</h2>
          <p>{isOld ? "Load the page again to use the new version." : `${error.message}. What you wrote is kept.`}</p>
          <button type="button" className="btn primary" onClick={() => location.reload()}>
            Load again
          </button>
        </div>
      </main>
    );
  }
}
