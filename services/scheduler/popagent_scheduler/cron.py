"""Cron rules: five fields and a few names for them, as Debian's cron understands them; what never fires is refused."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Final

from cronsim import CronSim, CronSimError

from popagent_kit.errors import InvalidInputError
from popagent_kit.text import excerpt

LONGEST: Final = 200
FIELDS: Final = ("minute", "hour", "day of the month", "month", "day of the week")
NAMED: Final = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
}
_EXAMPLE: Final = "“30 7 * * MON-FRI” is half past seven on working days."
# Everything that the library understands; it is also what bounds its work.
_CHARACTERS: Final = re.compile(r"[0-9A-Za-z*,/#-]+")
_LIBRARY_NAMES: Final = dict(zip(("minute", "hour", "day-of-month", "month", "day-of-week"), FIELDS, strict=True))


@dataclass(frozen=True, slots=True)
class CronRule:
    """A rule that fires some day. Its moments are those of a wall clock in a time zone.

    A time that a clock skips in spring fires when it goes on; one that it shows twice in autumn fires once, unless the
    rule fires every hour or oftener.
    """

    text: str
    words: str

    def after(self, moment: datetime, zone: tzinfo) -> Iterator[datetime]:
        """Yield the moments after `moment` in UTC, each later than the one before, for fifty years at least."""
        last = moment
        # A time that was skipped and one that exists may be the same moment.
        for planned in CronSim(self.text, moment.astimezone(zone)):
            at = planned.astimezone(UTC)
            if at > last:
                last = at
                yield at

    def newest(self, moment: datetime, zone: tzinfo) -> datetime | None:
        """Return the last moment that was not after `moment`, None when there was none in fifty years."""
        # The library begins before the second that it is given.
        for planned in CronSim(self.text, moment.astimezone(zone).replace(microsecond=0), reverse=True):
            at = planned.astimezone(UTC)
            following = next(self.after(at, zone), None)
            return following if following is not None and following <= moment else at
        return None


def parse(rule: str, *, field: str = "cron") -> CronRule:
    """Return the rule.

    Raises:
        InvalidInputError: It is none, or never fires; `field` is the field of the request that held it.
    """
    text = NAMED.get(rule.strip().lower(), rule.strip())
    if refusal := _refusal(text):
        raise InvalidInputError(refusal, field=field)
    try:
        simulated = CronSim(text, datetime(2000, 1, 1, tzinfo=UTC))
        words = simulated.explain()
        next(simulated)
    except CronSimError as error:
        raise InvalidInputError(_why(str(error), text), field=field) from error
    except StopIteration:
        raise InvalidInputError(f"“{text}” never fires: there is no such day.", field=field) from None
    return CronRule(text, words)


def _refusal(text: str) -> str | None:
    if not text:
        return f"A rule is missing. {_EXAMPLE}"
    if len(text) > LONGEST:
        return f"A rule has at most {LONGEST} characters; this one has {len(text):,}."
    if text.startswith("@"):
        names = ", ".join(NAMED)
        return f"“{excerpt(text, 40)}” is no name of a rule. There are {names}; else write five fields. {_EXAMPLE}"
    parts = text.split()
    if len(parts) != len(FIELDS):
        count = "one field" if len(parts) == 1 else f"{len(parts)} fields"
        return f"A rule has five fields, {', '.join(FIELDS)}; this one has {count}. {_EXAMPLE}"
    for name, part in zip(FIELDS, parts, strict=True):
        if _CHARACTERS.fullmatch(part) is None:
            return f"The {name} cannot be “{excerpt(part, 40)}”. {_EXAMPLE}"
    return None


def _why(said: str, text: str) -> str:
    """Put the library's “Bad minute” into a sentence that shows what stands there."""
    name = _LIBRARY_NAMES.get(said.removeprefix("Bad "), "")
    if not name:
        return f"“{text}” is no rule. {_EXAMPLE}"
    part = text.split()[FIELDS.index(name)]
    if name == FIELDS[2] and re.fullmatch(r"(?:29|30|31)(?:[-,/]\d+)*", part):
        return f"“{text}” never fires: none of its months has that day."
    return f"The {name} cannot be “{part}”. {_EXAMPLE}"
