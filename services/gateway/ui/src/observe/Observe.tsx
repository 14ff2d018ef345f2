import { Route, Switch } from "wouter";

/** Traces: the list, and one of them as a waterfall. */
export default function Observe() {
  return (
    <Switch>
      <Route path="/observe">
        <main className="main">
          <header className="bar">
            <h1>Observe</h1>
          </header>
        </main>
      </Route>
    </Switch>
  );
}
