"""What to do about what is not well, and what works all the same, in one place for `popagent doctor` and for health."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from popagent_kit.settings import command

# How the state of a check begins that looks for what nobody set up: nothing is wrong, and nothing is there.
NOT_SET_UP: Final = "not set up"


def is_trouble(state: str) -> bool:
    """Tell whether the state of a check says that something is wrong."""
    return state != "ok" and not state.startswith(NOT_SET_UP)


@dataclass(frozen=True)
class Remedy:
    """What works all the same, and what to do."""

    still_works: str
    advice: str
    """As `popagent doctor` prints it, behind a colon."""

    @property
    def fix(self) -> str:
        """Return the advice as a sentence of its own."""
        return f"{self.advice[0].upper()}{self.advice[1:]}."


def connect_a_model() -> str:
    """Say how to get a model."""
    return (
        f"connect one in the settings of the page or set POPAGENT_MODEL_URL; `{command('model pull')}` and a new start "
        "bring the embedded one"
    )


def reach_server(variable: str) -> str:
    """Say what to do about a database or bus that does not let us in; `variable` names one of the operator's own."""
    return (
        f"an embedded one is started again by itself, `{command('logs')}` shows why it fails; start your own, or "
        f"correct {variable}; for rights see `{command('bootstrap --print')}`"
    )


def restore_secret_key() -> str:
    """Say what to do about secrets that cannot be read."""
    return "put the POPAGENT_SECRET_KEY of before back from your backup, or enter the secrets again"


def set_up_search() -> str:
    """Say how the web can be searched."""
    return "start a SearXNG that gives JSON, as docs/web-search.md says, and name it in SEARXNG_URL"


def restart_service(name: str) -> str:
    """Say what to do about a service that does not answer."""
    return (
        f"it is started again by itself; if it stays away, `{command(f'logs {name}')}` shows why and "
        f"`{command('doctor')}` checks this machine"
    )


def remedy_for_check(name: str) -> Remedy:
    """Return the remedy for a check of the suite or of a service."""
    match name:
        case "postgres":
            return Remedy(
                "Answers that are being written go on and are stored when it is back; traces can be read.",
                reach_server("DATABASE_URL"),
            )
        case "observability-postgres":
            return Remedy(
                "Chats work. What happens now is shown under traces when it is back.",
                reach_server("OBSERVABILITY_DATABASE_URL"),
            )
        case "nats":
            return Remedy(
                "Answers that are being written go on; nothing new is heard until it is back.", reach_server("NATS_URL")
            )
        case "model":
            return Remedy(
                "Chats can be read, searched and managed; new questions get no answer.",
                f"start the model server if it is down, undo a wrong address with `{command('models disconnect')}`, "
                f"or {connect_a_model()}",
            )
        case "secrets":
            return Remedy("All that needs no stored key.", restore_secret_key())
        case "shell":
            return Remedy(
                "Agents read and change files; no command runs, confined or not.",
                "allow user namespaces on this machine, as docs/sandbox.md says for each system; then start again",
            )
        case "search":
            return Remedy("Agents work without the web.", set_up_search())
        case _:
            return Remedy(
                "The rest works.", f"`{command('doctor')}` checks this machine, `{command('logs')}` shows more"
            )


_WITHOUT: Final = {
    "chat": "Traces can be read; chats and settings come back with it.",
    "observability": "Chats work. What happens now is shown under traces when it is back.",
}


def remedy_for_service(name: str) -> Remedy:
    """Return the remedy for a service that does not answer or is not ready."""
    return Remedy(_WITHOUT.get(name, "Chats and traces work."), restart_service(name))
