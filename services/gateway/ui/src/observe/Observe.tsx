import { Redirect, Route, Switch } from "wouter";
import { TraceListScreen } from "./TraceListScreen";
import { TraceScreen } from "./TraceScreen";
import "./observe.css";

/** Traces: the list, and one of them as a waterfall. */
export default function Observe() {
  return (
    <Switch>
      <Route path="/observe" component={TraceListScreen} />
      <Route path="/observe/traces/:id">{({ id }) => <TraceScreen key={id} id={id} />}</Route>
      <Route>
        <Redirect to="/observe" replace />
      </Route>
    </Switch>
  );
}
