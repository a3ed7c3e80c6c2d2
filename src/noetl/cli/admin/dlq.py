"""`noetl dlq`: lists, shows, replays and discards dead letters, of the store of this machine or of a server.

Exit code 0; 1 where a replay failed again; 2 where nothing fits what was asked. Tested in tests/acceptance/test_dlq_cli.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from noetl.cli.common.completers import among
from noetl.cli.common.store import AsJson, Place, as_json, call
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl.cli.admin.dead_letters import Desk

_ACTIONS = ("list", "groups", "show", "replay", "discard")
_ACTION = (
    "`list` letters, the last first; list the `groups` of one cause; `show` one with its payload, stack and context; "
    "`replay` or `discard` one, a group, or all of an execution."
)
_MOST_SHOWN = 60  # characters of an error in a list

Patch = Annotated[
    list[str] | None,
    typer.Option(
        "--patch",
        metavar="PATH=VALUE",
        help="Replay with another value: spec.url=…, input.n=…, args.n=…, item.id=…; JSON or text; may be given often.",
    ),
]
Wait = Annotated[
    str | None,
    typer.Option("--wait", metavar="[=SECONDS]", help="Stay until a server's workers are done with a replay."),
]


def command(
    action: Annotated[str, typer.Argument(metavar="ACTION", help=_ACTION, autocompletion=among(*_ACTIONS))],
    id: Annotated[str | None, typer.Argument(metavar="[ID]", help="The letter, as `list` gives it.")] = None,
    status: Annotated[
        list[str] | None,
        typer.Option(
            "--status", help="pending (the default), replaying, replayed, discarded or all; may be given often."
        ),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=1_000, help="How many to list.")] = 100,
    group: Annotated[
        str | None, typer.Option("--group", metavar="FP", help="Letters of one cause, by its fingerprint.")
    ] = None,
    execution: Annotated[str | None, typer.Option("--execution", metavar="ID", help="Letters of an execution.")] = None,
    path: Annotated[str | None, typer.Option("--path", help="Letters of a playbook.")] = None,
    step: Annotated[str | None, typer.Option("--step", help="Letters of a step.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="Letters of a tool kind.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Replay or discard all letters that wait.")] = False,
    patch: Patch = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Replay nothing; check, and show what would be.")] = False,
    wait: Wait = None,
    reason: Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why letters are discarded.")] = None,
    json: AsJson = False,
    place: Place = None,
) -> None:
    """Work with dead letters: what failed for good and waits for somebody to decide."""

    async def job() -> int:
        from noetl.cli.admin.dead_letters import Chosen, desk

        _check(action)
        chosen = Chosen(id, tuple(status or ("pending",)), limit, group, execution, path, step, kind, everything)
        async with desk(place) as at:
            if action in ("list", "groups"):
                return await _list(at, chosen, action, json)
            if action == "show":
                return _show(await at.letter(chosen.the_id()), json)
            chosen.check(action)
            if action == "discard":
                return await _discard(at, chosen, reason, json)
            return await _replay(at, chosen, values(patch or ()), dry_run, _patience(wait), json)

    raise typer.Exit(call(job))


def _check(action: str) -> None:
    if action not in _ACTIONS:
        raise InvalidInput(f"there is no `noetl dlq {action}`; there are {', '.join(_ACTIONS)}.")


def _patience(wait: str | None) -> float:
    from noetl.cli.executions.run import patience

    return patience(wait)


def values(given: Any) -> dict[str, Any]:
    """Read the values of a patch: JSON, or else text. Raises InvalidInput."""
    from msgspec import DecodeError
    from msgspec.json import decode

    found: dict[str, Any] = {}
    for one in given:
        path, sign, value = one.partition("=")
        if not sign or not path:
            raise InvalidInput(f"a patch is PATH=VALUE, such as spec.url=https://example.org, and this is {one!r}.")
        try:
            found[path.strip()] = decode(value)
        except DecodeError:
            found[path.strip()] = value
    return found


async def _list(at: Desk, chosen: Any, what: str, json: bool) -> int:
    found = await (at.groups(chosen) if what == "groups" else at.letters(chosen))
    if json:
        typer.echo(as_json(found))
        return 0
    for one in found:
        typer.echo(_group_line(one) if what == "groups" else _line(one))
    if not found:
        typer.echo("no dead letters", err=True)
    elif what == "list":
        typer.echo("`noetl dlq show ID` tells all of one, `noetl dlq groups` counts them by cause", err=True)
    return 0


def _line(one: Any) -> str:
    where = one.step_id if one.loop_index is None else f"{one.step_id}[{one.loop_index}]"
    tries = f"{one.attempts} attempt{'s' if one.attempts != 1 else ''}"
    return f"{one.message_id:<32} {one.fingerprint} {one.status:<9} {where} | {one.tool_kind or '-'} | {tries} | {_cut(one.last_error)}"


def _group_line(one: Any) -> str:
    where = f"{one.path}:{one.step_id}" if one.path else one.step_id
    return f"{one.fingerprint} {one.count:>6} in {one.executions} | {where} | {one.tool_kind or '-'} | {_cut(one.last_error)}"


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MOST_SHOWN else line[:_MOST_SHOWN] + "…"


def _show(letter: Any, json: bool) -> int:
    import msgspec

    from noetl.cli.output.progress import clock

    if json:
        typer.echo(as_json(letter))
        return 0
    texts = ("last_stack", "context_excerpt", "payload", "error")
    for name in letter.__struct_fields__:
        value = getattr(letter, name)
        if name in texts or value in (None, ""):
            continue
        typer.echo(f"{name:<16} {clock(value) if name in ('first_seen', 'last_seen', 'closed_at') else value}")
    for name in ("error", "payload"):
        text = msgspec.json.format(msgspec.json.encode(getattr(letter, name)), indent=2).decode()
        typer.echo(f"\n{name}\n{text}")
    for name in ("last_stack", "context_excerpt"):
        if getattr(letter, name):
            typer.echo(f"\n{name}\n{getattr(letter, name)}")
    return 0


async def _discard(at: Desk, chosen: Any, reason: str | None, json: bool) -> int:
    if not (reason or "").strip():
        raise InvalidInput("`--reason TEXT` says why letters are discarded; it is kept with them.")
    count = await at.discard(chosen, str(reason))
    typer.echo(as_json({"discarded": count}) if json else _counted(count, "discarded"))
    return 0


async def _replay(at: Desk, chosen: Any, patch: dict[str, Any], dry_run: bool, wait_s: float, json: bool) -> int:
    if dry_run:
        found = await at.preview(chosen, patch)
        if json:
            typer.echo(as_json([{"message_id": name, "payload": payload} for name, payload in found]))
            return 0
        for name, payload in found[:20]:
            typer.echo(f"{name} {as_json(payload)}")
        typer.echo(_counted(len(found), "would be replayed"))
        return 0
    count, returned = await at.replay(chosen, patch, wait_s)
    told = {"replayed": count} | ({} if returned is None else {"failed_again": returned})
    if json:
        typer.echo(as_json(told))
    else:
        more = "" if returned is None else f"; {count - returned} repaired, {returned} failed again"
        typer.echo(_counted(count, "replayed") + more)
    return 1 if returned else 0


def _counted(count: int, what: str) -> str:
    return f"{count} dead letter{'' if count == 1 else 's'} {what}"
