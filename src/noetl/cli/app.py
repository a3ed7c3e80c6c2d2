"""Table of commands, and the application that imports only the one that is called.

`noetl --help` prints the table without importing a command. Tested in tests/acceptance/test_cli.py.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from importlib import import_module
from typing import Annotated

import typer

from noetl import __version__
from noetl.cli.runtime.terminal import echo

# command → (module, summary); the module's `command` is a function, or a group of sub-commands
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("noetl.cli.executions.run", "Check a playbook, run it in this process and print its result."),
    "runs": ("noetl.cli.executions.runs", "List executions, newest first."),
    "status": ("noetl.cli.executions.status", "Show the status of an execution and what it is waiting for."),
    "events": ("noetl.cli.executions.events", "Print the event log of an execution."),
    "logs": ("noetl.cli.executions.logs", "Print the output of an execution's tasks."),
    "resume": ("noetl.cli.executions.resume", "Resume a local execution whose process ended."),
    "trace": ("noetl.cli.executions.trace", "Print the trace of an execution, or send it to a receiver."),
    "replay": ("noetl.cli.executions.replay", "Show the state of an execution at any event, or diff two."),
    "compare": ("noetl.cli.executions.compare", "Compare two executions: where they part, values, text, steps."),
    "fork": ("noetl.cli.executions.fork", "Start a new execution from the middle of an old one."),
    "retry": ("noetl.cli.executions.retry", "Continue from the failed step of an execution, in a new one."),
    "delete": ("noetl.cli.executions.delete", "Delete an ended execution."),
    "signal": ("noetl.cli.executions.signal", "Send a signal to an execution."),
    "approve": ("noetl.cli.executions.approve", "Approve what an execution waits for."),
    "reject": ("noetl.cli.executions.reject", "Reject what an execution waits for."),
    "cancel": ("noetl.cli.executions.cancel", "Cancel an execution or one of its step runs."),
    "pause": ("noetl.cli.executions.pause", "Pause an execution: running steps finish, no new ones start."),
    "unpause": ("noetl.cli.executions.unpause", "Continue a paused execution."),
    "dlq": ("noetl.cli.admin.dlq", "List, show, replay and discard dead letters."),
    "serve": ("noetl.cli.servers.serve", "Run the server: the API and the queue for remote workers."),
    "up": ("noetl.cli.servers.up", "Run a server and a worker in one process."),
    "queue": ("noetl.cli.servers.queue", "Show queues and pools: waiting work, its playbooks, and limits."),
    "top": ("noetl.cli.servers.top", "Watch a server: executions, queues, workers, rates, failures."),
    "worker": ("noetl.cli.servers.worker", "Run a worker for a remote server; list and drain workers."),
    "doctor": ("noetl.cli.servers.doctor", "Check configuration, store, keys, clocks, disk and server."),
    "context": ("noetl.cli.servers.context", "Name servers and choose the one that commands use."),
    "register": ("noetl.cli.servers.register", "Register playbooks in a server's catalog."),
    "playbooks": ("noetl.cli.servers.playbooks", "List, show and delete the playbooks of a catalog."),
    "exec": ("noetl.cli.executions.exec", "Start one or many executions on a server."),
    "webhook": ("noetl.cli.triggers.webhook", "Create, list, pause, test and delete webhooks of playbooks."),
    "trigger": (
        "noetl.cli.triggers.trigger",
        "Create, list, pause and delete triggers: starts after ended executions.",
    ),
    "notification": (
        "noetl.cli.triggers.notification",
        "Create, list, pause, test and delete notifications about executions.",
    ),
    "subscription": (
        "noetl.cli.triggers.subscription",
        "Create, list, pause, test and delete subscriptions of playbooks.",
    ),
    "schedule": ("noetl.cli.triggers.schedule", "Create, list, pause and delete schedules of playbooks."),
    "credential": ("noetl.cli.admin.credential", "Store, list and delete a server's credentials."),
    "key": ("noetl.cli.admin.key", "List the keys that seal credentials, and rotate the master key."),
    "outbox": ("noetl.cli.admin.outbox", "List, show, retry, discard and deliver outbox messages."),
    "token": ("noetl.cli.admin.token", "Create, list and revoke API tokens."),
    "user": ("noetl.cli.admin.user", "Create, list, disable and delete users, and set passwords."),
    "group": ("noetl.cli.admin.group", "Create, list and delete groups of users."),
    "config": ("noetl.cli.admin.config", "Show the settings with their origin, and check them."),
    "audit": ("noetl.cli.admin.audit", "List, verify and export the audit trail."),
    "db": ("noetl.cli.admin.db", "Create, migrate and check the PostgreSQL database of the store."),
    "admin": ("noetl.cli.admin.admin", "Maintain a store: rebuild projections, collect garbage, prune."),
    "validate": ("noetl.cli.language.validate", "Check playbooks and report every problem."),
    "record": ("noetl.cli.executions.record", "Record the task results of an execution for tests."),
    "test": ("noetl.cli.language.test", "Run the tests of playbooks in simulated time."),
    "graph": ("noetl.cli.language.graph", "Draw the graph of a playbook."),
    "fmt": ("noetl.cli.language.fmt", "Format playbooks in place, keeping comments."),
    "upgrade": ("noetl.cli.language.upgrade", "Rewrite playbooks of older dialects in today's form."),
    "explain": (
        "noetl.cli.executions.explain",
        "Explain a topic of the language, or why an execution is where it is.",
    ),
    "schema": ("noetl.cli.language.schema", "Print the JSON Schema of playbooks or of test files."),
    "lsp": ("noetl.cli.language.lsp", "Run the language server for editors."),
    "completion": ("noetl.cli.language.completion", "Print the completion script of a shell."),
}
HELP = "NoETL: playbooks that are checked, explained and drawn before they run."
COMPLETE_VARIABLE = "_NOETL_COMPLETE"  # set by a shell that asks for completions
BARE_OPTIONS = {"--wait": "--wait=forever"}  # options whose value may be omitted, and what that means


def build(wanted: Collection[str]) -> typer.Typer:
    """Build the application; import the wanted commands and only list the others."""
    app = typer.Typer(
        name="noetl",
        help=HELP,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(help=HELP)(_root)
    for name, (module, summary) in COMMANDS.items():
        if name not in wanted:
            app.command(name, short_help=summary, help=summary)(_placeholder)
            continue
        command = import_module(module).command
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name, short_help=summary)
        else:
            app.command(name, short_help=summary)(command)
    return app


def run(arguments: list[str]) -> None:
    """Run the command line, importing only the command that it names."""
    words = arguments
    if COMPLETE_VARIABLE in os.environ:
        from noetl.cli.arguments.completers import completion_line

        words = completion_line()
    wanted = next((word for word in words if word in COMMANDS), None)
    build({wanted} if wanted else ())([BARE_OPTIONS.get(word, word) for word in arguments], prog_name="noetl")


def _show_version(wanted: bool) -> None:
    if wanted:
        echo(f"noetl {__version__}")
        raise typer.Exit


def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Options before a command."""


def _placeholder() -> None:
    """Stand in for a command that is listed but not called."""
