"""What the scheduler reads from its environment."""

from __future__ import annotations

from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import tzlocal
from pydantic import field_validator

from popagent_host import ServiceSettings
from popagent_kit.settings import setting


class SchedulerSettings(ServiceSettings):
    """Its own settings beside those of every service."""

    timezone: str = setting(
        "POPAGENT_TIMEZONE",
        "",
        description="Time zone of cron rules, Europe/Vienna for example; empty: that of the machine.",
    )

    @field_validator("timezone")
    @classmethod
    def _known(cls, name: str) -> str:
        try:
            return ZoneInfo(name).key if name else ""
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise ValueError(f"there is no time zone “{name}”; names look like Europe/Vienna") from error

    @property
    def zone(self) -> ZoneInfo:
        """Return the zone that rules are read in."""
        return ZoneInfo(self.timezone or tzlocal.get_localzone_name())
