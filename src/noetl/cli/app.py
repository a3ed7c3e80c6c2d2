"""The table of commands, and the application that imports only the one that is called.

`noetl --help` prints the table without importing a command, so it starts fast. Tested in tests/acceptance/test_cli.py.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from importlib import import_module
from typing import Annotated, Any

import typer

from noetl import __version__

# command → (module, one line of help); the module's `command` is the command
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("noetl.cli.executions.run", "Check a playbook, run it here, and print its result."),
    "runs": ("noetl.cli.executions.runs", "List executions, the newest first."),
    "status": ("noetl.cli.executions.status", "Tell how an execution stands."),
    "events": ("noetl.cli.executions.events", "Print the log of an execution."),
    "logs": ("noetl.cli.executions.logs", "Print what the tasks of an execution wrote."),
    "resume": ("noetl.cli.executions.resume", "Go on with an execution whose process ended."),
    "replay": (
        "noetl.cli.executions.replay",
        "Show the state of an execution at any event, or what changed between two.",
    ),
    "fork": ("noetl.cli.executions.fork", "Start a new execution from the middle of an old one."),
    "signal": ("noetl.cli.executions.signal", "Send a signal to an execution."),
    "cancel": ("noetl.cli.executions.cancel", "End an execution."),
    "pause": ("noetl.cli.executions.pause", "Let an execution schedule nothing new."),
    "unpause": ("noetl.cli.executions.unpause", "Let a paused execution go on."),
    "dlq": ("noetl.cli.admin.dlq", "List, show, replay and discard what failed for good."),
    "serve": ("noetl.cli.servers.serve", "Run the server: the API, and work for workers that connect to it."),
    "up": ("noetl.cli.servers.up", "Run a server and a worker in one process."),
    "worker": ("noetl.cli.servers.worker", "Run a worker for a server elsewhere; list and drain those there are."),
    "context": ("noetl.cli.servers.context", "Name servers, and say which one commands go to."),
    "register": ("noetl.cli.servers.register", "Put playbooks into a server's catalog."),
    "exec": ("noetl.cli.executions.exec", "Start an execution on a server."),
    "credential": ("noetl.cli.admin.credential", "Keep, list and delete the credentials of a server."),
    "outbox": (
        "noetl.cli.admin.outbox",
        "Look after the messages for other systems: list, show, retry, discard, drain.",
    ),
    "token": ("noetl.cli.admin.token", "Make, list and revoke API tokens, of a store or a server."),
    "db": ("noetl.cli.admin.db", "Make the PostgreSQL database of the store, bring it up to date, or check it."),
    "admin": ("noetl.cli.admin.admin", "Look after a store."),
    "validate": ("noetl.cli.language.validate", "Check playbooks and report everything that is wrong with them."),
    "record": ("noetl.cli.executions.record", "Keep what the tasks of an execution came to, for tests."),
    "test": ("noetl.cli.language.test", "Play the tests of playbooks, in pretended time."),
    "graph": ("noetl.cli.language.graph", "Draw the net of a playbook."),
    "fmt": ("noetl.cli.language.fmt", "Format playbooks in place; comments stay."),
    "explain": (
        "noetl.cli.executions.explain",
        "Explain a code, a kind, a field, a filter, a scope; or why an execution is where it is.",
    ),
    "schema": ("noetl.cli.language.schema", "Print the JSON Schema of playbooks or of files of tests, for editors."),
    "lsp": ("noetl.cli.language.lsp", "Run the language server for editors."),
    "completion": (
        "noetl.cli.language.completion",
        "Print what a shell runs to complete commands, executions and steps.",
    ),
}
HELP = "NoETL: playbooks that are checked, explained and drawn before they run."
COMPLETES = "_NOETL_COMPLETE"  # set by a shell that asks how a line may go on
ALONE = {"--wait": "--wait=forever"}  # options whose value may be left out, and what that means


def build(wanted: Collection[str]) -> typer.Typer:
    """Make the application; of the commands, those that are wanted are imported, the others only listed."""
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
        loaded: Any = import_module(module).command if name in wanted else _listed
        app.command(name, short_help=summary, help=None if name in wanted else summary)(loaded)
    return app


def run(arguments: list[str]) -> None:
    """Run the command line; the first word that names a command decides what is imported."""
    words = arguments
    if COMPLETES in os.environ:
        from noetl.cli.common.completers import line

        words = line()
    wanted = next((word for word in words if word in COMMANDS), None)
    build({wanted} if wanted else ())([ALONE.get(word, word) for word in arguments], prog_name="noetl")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"noetl {__version__}")
        raise typer.Exit


def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and end.")
    ] = False,
) -> None:
    """Take the options that stand before a command."""


def _listed() -> None:
    """Stand in for a command that is listed and not called."""
