"""`popagent traces`: where the time of a turn went."""

from __future__ import annotations

import itertools
import re
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final

import click

from popagent_cli.client import ID, PAGE, Client, with_client
from popagent_cli.errors import CliError
from popagent_cli.printing import (
    as_json_option,
    duration,
    fit,
    local_time,
    note,
    print_json,
    print_table,
    size,
    terminal_width,
    wants_colour,
    width,
)
from popagent_cli.safe_text import one_safe_line
from popagent_kit.settings import command
from popagent_local.groups import Group

BAR_COLUMNS: Final = 30
NAME_COLUMNS: Final = 44
DEEPEST: Final = 20
TRACE_ID: Final = re.compile(r"[0-9a-f]{32}\Z")
Span = dict[str, Any]


@click.group(cls=Group)
def traces() -> None:
    """See where the time of a turn went."""


@traces.command(name="list")
@click.option("--session", type=ID, help="Only those of one session.")
@click.option("--status", type=click.Choice(["running", "ok", "error"]), help="Only those in this state.")
@click.option("--limit", default=20, show_default=True, type=click.IntRange(1, 10_000))
@click.option("--all", "every", is_flag=True, help="Those of plain requests too, not only of turns.")
@as_json_option
@with_client
def list_traces(
    client: Client, *, session: str | None, status: str | None, limit: int, every: bool, as_json: bool
) -> None:
    """List traces of turns, newest first."""
    found = list(itertools.islice(_newest(client, every, sessionId=session, status=status), limit))
    if as_json:
        print_json({"items": found})
        return
    if not found:
        note("No trace is stored" + (" of this kind." if session or status else " yet; each turn makes one."))
        return
    rows = [
        [
            row["traceId"],
            local_time(row["startedAt"]),
            state_of(row),
            duration(row["durationMs"]),
            str(row["spanCount"]),
            f"{row['inputTokens']:,} → {row['outputTokens']:,}",
            row["name"],
        ]
        for row in found
    ]
    print_table(["TRACE", "STARTED", "STATE", ">TOOK", ">SPANS", ">TOKENS", "NAME"], rows)


@traces.command()
@click.argument("trace", required=False)
@click.option("--logs", "with_logs", is_flag=True, help="Show the log records of the trace too.")
@as_json_option
@with_client
def show(client: Client, trace: str | None, with_logs: bool, as_json: bool) -> None:
    """Show a trace as a waterfall; that of the newest turn when no id is given."""
    view = client.get(f"/api/observability/traces/{_trace_id(client, trace)}")
    if as_json:
        print_json(view)
        return
    tokens = f" · {view['inputTokens']:,} → {view['outputTokens']:,} tokens" if view["inputTokens"] else ""
    click.echo(f"{one_safe_line(view['name'])} · {state_of(view)} · {duration(view['durationMs'])}{tokens}")
    click.echo(f"{view['traceId']} · {local_time(view['startedAt'])}\n")
    for line in waterfall(view["spans"]):
        click.echo(line)
    if view["truncated"]:
        note("The trace is larger than what is shown.")
    if with_logs:
        click.echo()
        for record in view["logs"]:
            when = datetime.fromisoformat(record["at"]).astimezone().strftime("%H:%M:%S.%f")[:-3]
            text = f"{when}  {record['level']:<7}  {record['service']:<14}  {one_safe_line(record['message'], 1_000)}"
            click.echo(fit(text, terminal_width()))
    elif view["logs"]:
        note(f"\n{len(view['logs'])} log records: {command('traces show ' + view['traceId'] + ' --logs')}")


@traces.command()
@as_json_option
@with_client
def store(client: Client, as_json: bool) -> None:
    """Show how much the store of traces holds, and how far it is behind."""
    view = client.get("/api/observability/health")
    if as_json:
        print_json(view)
        return
    click.echo(f"{view['spans']:,} spans and {view['logs']:,} log records, {size(view['sizeBytes'])}")
    if view["oldestAt"]:
        click.echo(f"from {local_time(view['oldestAt'])} to {local_time(view['newestAt'])}")
    click.echo(f"{view['pendingBatches']:,} batches wait to be stored")


def _trace_id(client: Client, given: str | None) -> str:
    if given is not None:
        if not TRACE_ID.match(given):
            raise CliError(f"A trace id has 32 hexadecimal digits; `{command('traces list')}` shows them.")
        return given
    for newest in _newest(client, every=False):
        return str(newest["traceId"])
    raise CliError("No trace of a turn is stored yet.")


def _newest(client: Client, every: bool, **filters: str | None) -> Iterator[dict[str, Any]]:
    """Yield traces, newest first; without `every` those of turns."""
    turns_only = None if every else "true"
    cursor: str | None = None
    while True:
        page = client.get("/api/observability/traces", limit=PAGE, cursor=cursor, turnsOnly=turns_only, **filters)
        yield from page["items"]
        cursor = page["nextCursor"]
        if cursor is None:
            return


def state_of(trace: dict[str, Any]) -> str:
    """Return how its turn ended, where that says more than the status of the trace."""
    ended = trace.get("turnState")
    return str(ended if ended not in (None, "completed") else trace["status"])


def waterfall(spans: list[Span]) -> Iterator[str]:
    """Yield one line a span, children below their parent, with a bar on the time of the whole trace."""
    if not spans:
        return
    start_ms = min(map(_started_ms, spans))
    end_ms = max(_started_ms(span) + (span["durationMs"] or 0) for span in spans)
    scale = BAR_COLUMNS / max(end_ms - start_ms, 0.001)
    rows = [(_label(span, depth), span) for span, depth in _in_tree_order(spans)]
    name_columns = min(NAME_COLUMNS, max(width(label) for label, _ in rows))
    service_columns = max(len(span["service"]) for span in spans)
    for label, span in rows:
        name = fit(label, name_columns)
        first = min(BAR_COLUMNS - 1, int((_started_ms(span) - start_ms) * scale))
        running = span["durationMs"] is None
        length = BAR_COLUMNS - first if running else max(1, round(span["durationMs"] * scale))
        bar = (" " * first + ("░" if running else "█") * min(length, BAR_COLUMNS - first)).ljust(BAR_COLUMNS)
        text = (
            f"{name}{' ' * (name_columns - width(name))}  {span['service']:<{service_columns}}"
            f"  {duration(span['durationMs']):>10}  {bar}"
        )
        if span["status"] == "error":
            why = one_safe_line(span["statusText"], 200)
            text = fit(f"{text}  {why or 'error'}", terminal_width())
            text = click.style(text, fg="red") if wants_colour(sys.stdout) else text
        yield text.rstrip()


def _label(span: Span, depth: int) -> str:
    return "  " * min(depth, DEEPEST) + one_safe_line(span["name"], 100)


def _started_ms(span: Span) -> float:
    return datetime.fromisoformat(span["startedAt"]).timestamp() * 1_000


def _in_tree_order(spans: list[Span]) -> Iterator[tuple[Span, int]]:
    """Yield (span, depth); a span whose parent is missing, or is itself below it, counts as a root."""
    ordered = sorted(spans, key=_started_ms)
    known = {span["spanId"] for span in ordered}
    children: dict[str | None, list[Span]] = {}
    for span in ordered:
        parent = span["parentId"] if span["parentId"] in known else None
        children.setdefault(parent, []).append(span)
    waiting = [(span, 0) for span in reversed(children.get(None, []))]
    seen: set[str] = set()
    while waiting:
        span, depth = waiting.pop()
        seen.add(span["spanId"])
        yield span, depth
        waiting += [(child, depth + 1) for child in reversed(children.get(span["spanId"], []))]
    yield from ((span, 0) for span in ordered if span["spanId"] not in seen)
