"""Every command: where its code is, its line in `--help` and its group there; code is loaded when it is called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Entry:
    """`place` is `module:attribute`; `help` is the first sentence of the command's own help, which a test compares."""

    place: str
    help: str


_LOCAL: Final = "popagent_local.commands"

SECTIONS: Final[dict[str, dict[str, Entry]]] = {
    "Talk": {
        "chat": Entry("popagent_cli.chat:chat", "Ask, and watch the answer grow."),
        "watch": Entry("popagent_cli.chat:watch", "Watch the answer that is being written in a session."),
        "stop": Entry("popagent_cli.chat:stop", "Stop the answer that is being written; what was written is kept."),
        "sessions": Entry("popagent_cli.sessions:sessions", "Find, name, archive and delete conversations."),
        "history": Entry("popagent_cli.history:history", "Export a whole conversation as Markdown or JSON."),
    },
    "Let it work": {
        "task-create": Entry("popagent_cli.tasks:create", "Give a task that goes on when nobody watches."),
        "task-list": Entry("popagent_cli.tasks:list_tasks", "List tasks, newest first."),
        "task-show": Entry("popagent_cli.tasks:show", "Show a task and what was done for it."),
        "task-cancel": Entry("popagent_cli.tasks:cancel", "Cancel a task; one that runs ends first."),
        "task-resolve": Entry(
            "popagent_cli.tasks:resolve", "Call a task done that did not complete, and say why it is."
        ),
        "task-retry": Entry("popagent_cli.tasks:retry", "Try a failed or dead-lettered task once more."),
        "task-delete": Entry("popagent_cli.tasks:delete", "Delete a task that has ended, with its transcript."),
        "schedule-list": Entry(
            "popagent_cli.schedules:schedule_list", "List schedules by name, with their next and their last time."
        ),
        "schedule-create": Entry("popagent_cli.schedules:schedule_create", "Make a schedule."),
        "schedule-preview": Entry(
            "popagent_cli.schedules:schedule_preview",
            "Say what a rule means, and when it would fire next; nothing is stored.",
        ),
        "schedule-patch": Entry("popagent_cli.schedules:schedule_patch", "Change a schedule."),
        "schedule-pause": Entry("popagent_cli.schedules:schedule_pause", "Let a schedule rest; tasks that run go on."),
        "schedule-resume": Entry(
            "popagent_cli.schedules:schedule_resume",
            "Let a schedule go on; what passed while it rested is not made up for.",
        ),
        "schedule-run": Entry("popagent_cli.schedules:schedule_run", "Run a schedule now, paused or not."),
        "schedule-history": Entry(
            "popagent_cli.schedules:schedule_history",
            "Tell what came of the times of a schedule, the newest first.",
        ),
        "schedule-delete": Entry(
            "popagent_cli.schedules:schedule_delete", "Delete a schedule and its history; its tasks stay."
        ),
        "channel-list": Entry("popagent_cli.channels:channel_list", "List channels, with what is unread."),
        "channel-post": Entry(
            "popagent_cli.channels:channel_post", "Write into a channel; naming an @agent starts a task."
        ),
        "channel-tail": Entry("popagent_cli.channels:channel_tail", "Show what was written last, or as it is written."),
        "channel-edit": Entry("popagent_cli.channels:channel_edit", "Change the text of a message of yours."),
        "channel-delete": Entry("popagent_cli.channels:channel_delete", "Take the text of a message out for good."),
        "channel-cancel": Entry("popagent_cli.channels:channel_cancel", "Cancel the task that a message started."),
        "channel-read": Entry("popagent_cli.channels:channel_read", "Count everything in a channel as read."),
        "channel-settings": Entry("popagent_cli.channels:channel_settings", "Show or change what posts start."),
    },
    "Write down": {
        "docs-list": Entry(
            "popagent_cli.docs:docs_list",
            "List the pages and folders of a workspace's documentation, or those below FOLDER.",
        ),
        "docs-search": Entry("popagent_cli.docs_search:docs_search", "Find sections of pages, the best first."),
        "docs-show": Entry("popagent_cli.docs:docs_show", "Print a page, as it is or as it was."),
        "docs-create": Entry(
            "popagent_cli.docs:docs_create",
            "Make a page from FILE, or from standard input where that is `-`, or an empty one.",
        ),
        "docs-write": Entry(
            "popagent_cli.docs:docs_write",
            "Replace the text of a page by FILE, or by standard input where that is `-`.",
        ),
        "docs-move": Entry("popagent_cli.docs:docs_move", "Move or rename a page, or a folder with all that is in it."),
        "docs-mkdir": Entry("popagent_cli.docs:docs_mkdir", "Make a folder, and those above it."),
        "docs-delete": Entry(
            "popagent_cli.docs:docs_delete",
            "Delete a page, or a folder with all that is in it; pages can be brought back for thirty days.",
        ),
        "docs-import": Entry(
            "popagent_cli.docs_files:docs_import", "Import the Markdown files of a folder, a zip or one file."
        ),
        "docs-export": Entry(
            "popagent_cli.docs_files:docs_export",
            "Write the pages of a workspace into a new folder, or into a file that ends in .zip.",
        ),
        "docs-history": Entry(
            "popagent_cli.docs:docs_history", "List the texts that a page has and had, the newest first."
        ),
        "docs-restore": Entry(
            "popagent_cli.docs:docs_restore",
            "Make an old text the newest one; a deleted page comes back where it was.",
        ),
    },
    "Set up": {
        "models": Entry("popagent_cli.models:models", "Show which models can answer."),
        "agents": Entry("popagent_cli.agents:agents", "Who the agents are; change what makes them so."),
        "workspace": Entry("popagent_cli.workspaces:workspace", "The folders that agents may work in."),
        "hooks": Entry("popagent_cli.hooks:hooks", "Programs of yours that agents ask before they act."),
        "skill-list": Entry("popagent_cli.skills:list_skills", "List the skills of an agent, enabled and disabled."),
        "skill-show": Entry("popagent_cli.skills:show", "Show a whole skill, or one of its references."),
        "skill-import": Entry(
            "popagent_cli.skill_folders:import_skills",
            "Store the skills that lie in folders; the agent's next run has them.",
        ),
        "skill-export": Entry(
            "popagent_cli.skill_folders:export_skills",
            "Write skills of an agent below FOLDER, all of them or those named.",
        ),
        "skill-enable": Entry("popagent_cli.skills:enable", "Let the agent's next run have a skill."),
        "skill-disable": Entry("popagent_cli.skills:disable", "Keep a skill out of the agent's runs; it stays stored."),
        "skill-delete": Entry(
            "popagent_cli.skills:delete", "Delete a skill; runs that have begun keep it to their end."
        ),
        "settings-show": Entry("popagent_cli.settings:show", "Show the settings of a section."),
        "settings-patch": Entry("popagent_cli.settings:patch", "Change settings of a section."),
    },
    "Look inside": {
        "health": Entry("popagent_cli.health:health", "Show how every service is; exit code 1 when not ready."),
        "agent-health": Entry(
            "popagent_cli.agents:agent_health",
            "Check the profiles and skills of the agents; exit code 1 when one has a fault.",
        ),
        "company": Entry("popagent_cli.agents:company", "Show the company's roster by department."),
        "events": Entry("popagent_cli.events:events", "Follow what happens, line by line, until Ctrl-C."),
        "jobs": Entry("popagent_cli.jobs:jobs", "List the newest jobs, those that are not over first."),
        "job-show": Entry("popagent_cli.jobs:show", "Show how far a job is, or follow it to its end."),
        "traces": Entry("popagent_cli.traces:traces", "See where the time of a turn went."),
        "openapi": Entry("popagent_cli.openapi:openapi", "Print the description of the HTTP API (OpenAPI, JSON)."),
    },
    "Run it on this machine": {
        "up": Entry(f"{_LOCAL}:up", "Start everything and stay in the foreground; Ctrl-C stops all of it."),
        "down": Entry(f"{_LOCAL}:down", "Stop everything; returns when all is gone."),
        "status": Entry(
            f"{_LOCAL}:status",
            "Show what runs, where it listens, and whether it is well; exit code 1 when something is not.",
        ),
        "logs": Entry(f"{_LOCAL}:logs", "Show the logs of all programs, or of one."),
        "doctor": Entry(f"{_LOCAL}:doctor", "Check what this machine must offer; every failure says its fix."),
        "config": Entry(
            f"{_LOCAL}:config", "Show every setting, its value and where it comes from; secrets stay hidden."
        ),
        "model": Entry(f"{_LOCAL}:model", "The weights of the embedded model."),
        "bootstrap": Entry(f"{_LOCAL}:bootstrap", "Make roles, schemas, extensions and streams; may be repeated."),
        "migrate": Entry(f"{_LOCAL}:migrate", "Bring every schema up to date; may be repeated."),
        "provision": Entry(
            f"{_LOCAL}:provision",
            "Write the logins that services started without `up` need: nats.conf, and one .env a service.",
        ),
        "install-service": Entry(f"{_LOCAL}:install_service", "Write a systemd unit that keeps popagent running."),
    },
}
COMMANDS: Final = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
