"""`noetl dlq`: list, show, replay and discard dead letters.

Exit code 0: done; 1: a replay failed again; 2: nothing matches. Tested in tests/acceptance/admin/test_dlq_cli.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, Place, parse_wait
from noetl.cli.output.format import format_time, shorten, to_json, to_pretty_json
from noetl.cli.runtime.runner import call
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput

_MAX_ERROR = 60  # characters of an error in a list
_MAX_PREVIEW = 20  # letters

LetterId = Annotated[str, typer.Argument(metavar="ID", help="Letter ID, as `noetl dlq list` prints it.")]
OptionalLetterId = Annotated[
    str | None, typer.Argument(metavar="[ID]", help="Letter ID, as `noetl dlq list` prints it.", show_default=False)
]
Status = Annotated[
    list[str] | None,
    typer.Option(
        "--status",
        help="Only letters with this status: pending, replaying, replayed, discarded or all; repeatable. "
        "[default: pending]",
    ),
]
Limit = Annotated[int, typer.Option("--limit", min=1, max=1_000, help="Maximum number of rows.")]
Group = Annotated[
    str | None,
    typer.Option("--group", metavar="FP", help="Only letters with this fingerprint, as `noetl dlq groups` prints it."),
]
Execution = Annotated[
    str | None, typer.Option("--execution", metavar="ID", help="Only letters of this execution; `last` is the newest.")
]
Path = Annotated[str | None, typer.Option("--path", help="Only letters of this playbook path.")]
Step = Annotated[str | None, typer.Option("--step", help="Only letters of this step.")]
Kind = Annotated[str | None, typer.Option("--kind", help="Only letters of this tool kind.")]
Patch = Annotated[
    list[str] | None,
    typer.Option(
        "--patch",
        metavar="PATH=VALUE",
        help="Change a value first: spec.url=…, input.n=…, args.n=…, item.id=…; JSON or text; repeatable.",
    ),
]
All = Annotated[bool, typer.Option("--all", help="Select every pending letter.")]

command = command_group(
    "List, show, replay and discard dead letters: work that failed for good and waits for a decision."
)


@command.command("list")
def list_letters(
    status: Status = None,
    limit: Limit = 100,
    group: Group = None,
    execution: Execution = None,
    path: Path = None,
    step: Step = None,
    kind: Kind = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """List dead letters, newest first."""

    async def job() -> None:
        from noetl.cli.admin.dead_letters import LetterFilter, select_letters

        wanted = LetterFilter(None, tuple(status or ("pending",)), limit, group, execution, path, step, kind)
        async with select_letters(store, wanted) as (queue, wanted):
            letters = await queue.letters(wanted)
        _print_rows(letters, _letter_row, json)
        if letters and not json:
            echo("`noetl dlq show ID` prints a letter, `noetl dlq groups` counts letters by cause.", err=True)

    call(job)


@command.command("groups")
def list_groups(
    status: Status = None,
    limit: Limit = 100,
    group: Group = None,
    execution: Execution = None,
    path: Path = None,
    step: Step = None,
    kind: Kind = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Count dead letters by cause."""

    async def job() -> None:
        from noetl.cli.admin.dead_letters import LetterFilter, select_letters

        wanted = LetterFilter(None, tuple(status or ("pending",)), limit, group, execution, path, step, kind)
        async with select_letters(store, wanted) as (queue, wanted):
            _print_rows(await queue.groups(wanted), _group_row, json)

    call(job)


@command.command("show")
def show(id: LetterId, json: AsJson = False, store: Place = None) -> None:
    """Print a dead letter with its error, payload, stack and context."""

    async def job() -> None:
        from noetl.cli.admin.dead_letters import open_queue

        async with open_queue(store) as queue:
            _print_letter(await queue.letter(id), json)

    call(job)


@command.command("replay")
def replay(
    id: OptionalLetterId = None,
    group: Group = None,
    execution: Execution = None,
    path: Path = None,
    step: Step = None,
    kind: Kind = None,
    everything: All = False,
    patch: Patch = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check the selection and print the payloads; replay nothing.")
    ] = False,
    wait: Annotated[
        str | None,
        typer.Option(
            "--wait",
            metavar="[=SECONDS]",
            help="Wait for a server's workers to finish: `--wait=SECONDS`, or `--wait` without a limit.",
        ),
    ] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Run dead letters again: one, a selection or all."""

    async def job() -> int:
        from noetl.cli.admin.dead_letters import LetterFilter, select_letters

        wanted = LetterFilter(id, ("pending",), 100, group, execution, path, step, kind, everything)
        wanted.require("replay")
        changes, wait_s = parse_patch(patch or ()), parse_wait(wait)
        async with select_letters(store, wanted) as (queue, wanted):
            if dry_run:
                _print_preview(await queue.preview(wanted, changes), json)
                return 0
            count, failed_again = await queue.replay(wanted, changes, wait_s)
        if json:
            result = {"replayed": count} | ({} if failed_again is None else {"failed_again": failed_again})
            echo(to_json(result))
        else:
            more = "" if failed_again is None else f"; {count - failed_again} repaired, {failed_again} failed again"
            echo(_count(count, "replayed") + more)
        return 1 if failed_again else 0

    raise typer.Exit(call(job))


@command.command("discard")
def discard(
    id: OptionalLetterId = None,
    group: Group = None,
    execution: Execution = None,
    path: Path = None,
    step: Step = None,
    kind: Kind = None,
    everything: All = False,
    reason: Annotated[
        str | None, typer.Option("--reason", metavar="TEXT", help="Reason, kept with the letters. Required.")
    ] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Close dead letters without running them: one, a selection or all."""

    async def job() -> None:
        from noetl.cli.admin.dead_letters import LetterFilter, select_letters

        wanted = LetterFilter(id, ("pending",), 100, group, execution, path, step, kind, everything)
        wanted.require("discard")
        if not (reason or "").strip():
            raise InvalidInput("No reason given. Add --reason TEXT; it is kept with the letters.")
        async with select_letters(store, wanted) as (queue, wanted):
            count = await queue.discard(wanted, str(reason))
        echo(to_json({"discarded": count}) if json else _count(count, "discarded"))

    call(job)


def parse_patch(given: Iterable[str]) -> dict[str, Any]:
    """Parse `PATH=VALUE` pairs; a value is JSON or text. Raises InvalidInput."""
    from noetl.cli.arguments.payload import parse_value

    changes: dict[str, Any] = {}
    for text in given:
        path, equals, value = text.partition("=")
        if not equals or not path:
            raise InvalidInput(f"`--patch {text}` is not of the form PATH=VALUE, such as spec.url=https://example.org.")
        changes[path.strip()] = parse_value(value)
    return changes


def _print_rows(rows: Any, row: Any, json: bool) -> None:
    for one in rows:
        echo(to_json(one) if json else row(one))
    if not rows and not json:
        echo("no dead letters", err=True)


def _letter_row(one: Any) -> str:
    where = one.step_id if one.loop_index is None else f"{one.step_id}[{one.loop_index}]"
    tries = f"{one.attempts} attempt{'s' if one.attempts != 1 else ''}"
    head = f"{one.message_id:<32} {one.fingerprint} {one.status:<9} {where}"
    return f"{head} | {one.tool_kind or '-'} | {tries} | {_error_text(one)}"


def _group_row(one: Any) -> str:
    where = f"{one.path}:{one.step_id}" if one.path else one.step_id
    return (
        f"{one.fingerprint} {one.count:>6} in {one.executions} | {where} | {one.tool_kind or '-'} | {_error_text(one)}"
    )


def _error_text(one: Any) -> str:
    return shorten(" ".join(one.last_error.split()), _MAX_ERROR)


def _print_letter(letter: Any, json: bool) -> None:
    if json:
        echo(to_json(letter))
        return
    blocks = ("last_stack", "context_excerpt", "payload", "error")
    for name in letter.__struct_fields__:
        value = getattr(letter, name)
        if name in blocks or value in (None, ""):
            continue
        echo(f"{name:<16} {format_time(value) if name in ('first_seen', 'last_seen', 'closed_at') else value}")
    for name in ("error", "payload"):
        echo(f"\n{name}\n{to_pretty_json(getattr(letter, name))}")
    for name in ("last_stack", "context_excerpt"):
        if getattr(letter, name):
            echo(f"\n{name}\n{getattr(letter, name)}")


def _print_preview(found: list[tuple[str, Any]], json: bool) -> None:
    if json:
        for name, payload in found:
            echo(to_json({"message_id": name, "payload": payload}))
        return
    for name, payload in found[:_MAX_PREVIEW]:
        echo(f"{name} {to_json(payload)}")
    echo(_count(len(found), "would be replayed"))


def _count(count: int, what: str) -> str:
    return f"{count} dead letter{'' if count == 1 else 's'} {what}"
