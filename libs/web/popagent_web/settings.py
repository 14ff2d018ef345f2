"""Where the web is searched."""

from __future__ import annotations

from urllib.parse import urlsplit

from pydantic import field_validator

from popagent_kit.settings import Settings, setting
from popagent_web.addresses import is_of_a_server, literal, origin_of


class SearchSettings(Settings):
    """Read by whatever runs agents, and by `popagent doctor`."""

    url: str = setting(
        "SEARXNG_URL",
        "http://127.0.0.1:8889",
        description="Address of your own SearXNG, which web searches go to; its settings must allow the format json.",
        max_length=500,
    )

    @field_validator("url")
    @classmethod
    def _is_the_address_of_a_server(cls, url: str) -> str:
        address = literal(origin_of(url).host)
        if urlsplit(url).query or urlsplit(url).fragment:
            raise ValueError("must end behind its path")
        if address is not None and not is_of_a_server(address):
            raise ValueError("must not be a link-local address")
        return url

    @property
    def is_given(self) -> bool:
        """Tell whether the operator named one."""
        return "url" in self.model_fields_set
