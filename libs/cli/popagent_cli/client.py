"""Asks popagent over HTTP; whatever goes wrong becomes one sentence with what to do."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self

import click
import httpx2

from popagent_cli.address import Address, find_address, how_to_start
from popagent_cli.errors import CliError, CutError, NotRunningError, RefusedError
from popagent_cli.safe_text import one_safe_line
from popagent_kit import json
from popagent_kit.errors import MalformedJsonError
from popagent_kit.settings import command

P = ParamSpec("P")

CONNECT_TIMEOUT_S: Final = 5.0
# The slowest route, trying a hook, takes up to 18 s.
ANSWER_TIMEOUT_S: Final = 30.0
PAGE: Final = 200


class Client:
    """One connection pool to one popagent."""

    def __init__(self, address: Address) -> None:
        self.address = address
        headers = {"x-popagent-key": address.key} if address.key else {}
        self._http = httpx2.Client(
            base_url=address.url,
            headers=headers,
            timeout=httpx2.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S),
            verify=address.url.startswith("https:"),  # reading the certificates takes longer than most answers
            trust_env=not address.is_loopback,  # a proxy of the environment cannot reach this machine's loopback
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.close()

    def get(self, path: str, **params: Any) -> Any:
        """Return the JSON of the answer; parameters that are None are left out."""
        return self.send("GET", path, params=params)

    def send(self, method: str, path: str, body: Any = None, *, params: dict[str, Any] | None = None) -> Any:
        """Return the JSON of the answer.

        Raises:
            NotRunningError: Nothing listens there.
            CutError: The connection broke, or no answer came in time.
            RefusedError: The answer is a refusal.
        """
        with self._plainly():
            response = self._http.request(method, path, json=body, params=given(params) if params else None)
        return self._accepted(response)

    def upload(self, path: str, content: bytes, media_type: str, params: dict[str, Any]) -> Any:
        """Send a file, and return the JSON of the answer; raises as `send` does."""
        headers = {"content-type": media_type}
        with self._plainly():
            response = self._http.post(path, content=content, headers=headers, params=given(params))
        return self._accepted(response)

    def answer(self, path: str) -> tuple[int, Any]:
        """Return status and JSON of a GET whose body is worth reading also with 503.

        Raises:
            RefusedError: Any other refusal.
        """
        with self._plainly():
            response = self._http.get(path)
        if response.status_code == 503 and "error" not in _body(response):
            return 503, _body(response)
        return response.status_code, self._accepted(response)

    def pages(self, path: str, limit: int, **params: Any) -> dict[str, Any]:
        """Return up to `limit` items over as many pages as needed, with what the last page says and its cursor."""
        items: list[Any] = []
        cursor: str | None = None
        while True:
            page = self.get(path, limit=min(PAGE, limit - len(items)), cursor=cursor, **params)
            items += page["items"]
            cursor = page["nextCursor"]
            if cursor is None or len(items) >= limit:
                return {**page, "items": items}

    @contextmanager
    def stream(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str] | None = None,
        params: dict[str, Any] | None = None,
        silence_s: float,
    ) -> Iterator[httpx2.Response]:
        """Open a stream; `silence_s` without a byte counts as a broken connection.

        Raises:
            As `send` does, also while the stream is read.
        """
        timeout = httpx2.Timeout(ANSWER_TIMEOUT_S, connect=CONNECT_TIMEOUT_S, read=silence_s)
        with self._plainly():
            request = self._http.stream(
                method,
                path,
                json=body,
                params=given(params) if params else None,
                headers=headers or {},
                timeout=timeout,
            )
            with request as response:
                if response.status_code >= 300:
                    response.read()
                    self._accepted(response)
                yield response

    def _accepted(self, response: httpx2.Response) -> Any:
        body = _body(response)
        if response.is_success and (body or response.status_code == 204):
            return body
        if "error" not in body:
            raise RefusedError(
                f"{self.address.url} answered {response.status_code}, and not as popagent does. "
                "Is it the right address?",
                status=response.status_code,
                code="not_popagent",
                body={},
                retry_after_s=0,
            )
        raise _refusal(response, body)

    @contextmanager
    def _plainly(self) -> Iterator[None]:
        try:
            yield
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            raise NotRunningError(self._nobody_there()) from error
        except httpx2.TimeoutException as error:
            raise CutError(
                f"popagent at {self.address.url} does not answer. `{command('status')}` shows how it is."
            ) from error
        except httpx2.HTTPError as error:
            raise CutError(f"The connection to {self.address.url} was cut. Try again.") from error

    def _nobody_there(self) -> str:
        if self.address.named:
            return f"Nothing answers at {self.address.url}. Is popagent running there, and is the address right?"
        if self.address.phase == "starting":
            return f"popagent is still starting. `{command('status')}` shows how far it is."
        if self.address.phase == "stopping":
            return f"popagent is stopping. {how_to_start()}"
        if self.address.phase == "ready":
            return f"popagent runs, but its door does not answer. `{command('logs gateway')}` shows why."
        return f"popagent is not running. {how_to_start()}"


def with_client(body: Callable[Concatenate[Client, P], None]) -> Callable[P, None]:
    """Give a command the client of the address that was asked for; adds `--url` after the command's name too."""

    @click.option("--url", "nearer_url", default=None, hidden=True)
    @functools.wraps(body)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        nearer = kwargs.pop("nearer_url", None)
        farther = click.get_current_context().find_root().obj
        url = nearer if isinstance(nearer, str) else farther
        with Client(find_address(url)) as client:
            body(client, *args, **kwargs)

    return wrapped


@contextmanager
def listed_by(listing: str) -> Iterator[None]:
    """Tell of what is not there which command lists what is."""
    try:
        yield
    except RefusedError as refused:
        if refused.status != 404 or not refused.body:
            raise
        raise CliError(f"{refused.message} `{command(listing)}` lists them.") from refused


class IdType(click.ParamType[str]):
    """An id as popagent makes and accepts them; anything else could name another path."""

    name = "id"
    pattern: Final = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the id."""
        if not self.pattern.match(str(value)):
            self.fail(f"{str(value)!r} is no id: letters, digits, - and _, at most 64.", param, ctx)
        return str(value)


ID: Final = IdType()


def given(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that somebody gave; what is None stays with the server."""
    return {name: value for name, value in fields.items() if value is not None}


def _body(response: httpx2.Response) -> dict[str, Any]:
    try:
        body = json.loads(response.content)
    except MalformedJsonError:
        return {}
    return body if isinstance(body, dict) else {}


def _refusal(response: httpx2.Response, body: dict[str, Any]) -> RefusedError:
    status, code = response.status_code, str(body.get("code", ""))
    retry_after = response.headers.get("retry-after", "")
    retry_after_s = float(retry_after) if retry_after.isdigit() else 0.0
    message = one_safe_line(str(body["error"]), 600)
    if message and message[-1] not in ".!?…":
        message += "."
    match status, code:
        case 401, _:
            message = "This popagent wants a key, and the one sent is missing or wrong. Set POPAGENT_API_KEY to it."
        case _, "revision_conflict":
            message = "It was changed by somebody else at the same time. Look at it again and repeat the command."
        case ((429 | 503), _):
            message += f" Try again in {max(1, int(retry_after_s))} s."
        case 500, _:
            place = f"traces show {body['traceId']}" if body.get("traceId") else "logs"
            message += f" See: {command(place)}"
        case _:
            pass
    return RefusedError(message, status=status, code=code, body=body, retry_after_s=retry_after_s)
