"""Compare a play with its case. Tested in tests/unit/testing/test_cases.py."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from noetl.dsl.diagnostic import nearest
from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar, plain
from noetl.engine.queries.view import envelope
from noetl.model.events import CANONICAL, Event
from noetl.model.refs import expanded
from noetl.testing.cases.checks.match import NOTHING, Difference, matched, same, shown
from noetl.testing.cases.files.read import Case
from noetl.testing.cases.player.mocks import Call
from noetl.testing.cases.player.player import PlayResult

Names = Mapping[str, Any]


def differences(case: Case, seen: PlayResult) -> Iterator[Difference]:
    """Yield every difference from the case's expectations."""
    expect = case.expect
    for problem in seen.problems:
        yield Difference(case.at, "mocks", "every call has a mock", problem)
    if seen.law is not None:
        yield Difference(case.at, "log", "the log folds to the state", seen.law)
    if seen.refused is not None and "refused" not in expect:
        yield Difference(case.at, "start", "the execution starts", f"it was refused: {seen.refused}")
        return
    names = names_of(seen)
    for entry in expect.entries:
        yield from _CHECKS[entry.key.text](entry.value, seen, names)


def names_of(seen: PlayResult) -> dict[str, Any]:
    """Return the names that conditions may read."""
    state = seen.state
    return {
        "status": seen.status,
        "result": expanded(state.result),
        "ctx": dict(state.ctx),
        "error": dict(state.error or {}),
        "workload": dict(seen.workload),
        "world": seen.world,
        "route": route(seen.events),
        "compensated": state.compensated,
    }


def route(events: list[Event]) -> list[str]:
    """Return the step-runs in scheduling order."""
    runs = (str(event.step_run_id) for event in events if event.event_type == "step.scheduled")
    return [found.removesuffix("#1") for found in dict.fromkeys(runs)]


def compensations(events: list[Event]) -> list[str]:
    """Return the compensations that succeeded, in order."""
    roles = {event.step_run_id for event in events if event.payload.get("role") == "compensation"}  # compensation runs
    return [step_of(event) for event in events if event.event_type == "step.done" and event.step_run_id in roles]


def step_of(event: Event) -> str:
    return str(event.step_run_id).partition("#")[0]


def _status(node: Node, seen: PlayResult, _: Names) -> Iterator[Difference]:
    if plain(node) != seen.status:
        error = seen.state.error
        note = f"error: {shown(error)}" if error else f"route: {' '.join(route(seen.events))}"
        yield Difference(node, "status", str(plain(node)), seen.status, note)


def _ctx(node: Node, seen: PlayResult, names: Names) -> Iterator[Difference]:
    for one in matched(node, dict(seen.state.ctx), "ctx", names):
        key = one.path.partition(".")[2].partition(".")[0].partition("[")[0]
        meant = nearest(key, seen.state.ctx) if one.found == "nothing" else None
        note = f"`ctx` has `{meant}`" if meant else one.note
        yield Difference(one.node, one.path, one.expected, one.found, note)


def _error(node: Node, seen: PlayResult, names: Names) -> Iterator[Difference]:
    error = dict(seen.state.error or {})
    if isinstance(node, Scalar):
        yield from matched(node, error.get("kind", NOTHING), "error.kind", names)
        return
    for entry in node.entries if isinstance(node, MapNode) else ():
        found, part = error.get(entry.key.text, NOTHING), plain(entry.value)
        if entry.key.text == "message" and isinstance(found, str) and str(part) in found:
            continue
        yield from matched(entry.value, found, f"error.{entry.key.text}", names)


def _in_order(node: Node, path: str, found: list[str]) -> Iterator[Difference]:
    wanted = [str(name).removesuffix("#1") for name in plain(node) or []]
    if wanted == found:
        return
    first = next(
        (i for i, (a, b) in enumerate(zip(wanted, found, strict=False)) if a != b), min(len(wanted), len(found))
    )
    place = node.items[first] if isinstance(node, ListNode) and first < len(node.items) else node
    ahead = f"after {' '.join(found[:first])}, " if first else ""
    here = found[first] if first < len(found) else "the end"
    note = f"{ahead}expected {wanted[first] if first < len(wanted) else 'the end'}, found {here}"
    yield Difference(place, path, " ".join(wanted), " ".join(found), note)


def _visits(node: Node, seen: PlayResult, _: Names) -> Iterator[Difference]:
    found = route(seen.events)
    rest = iter(found)
    for item in node.items if isinstance(node, ListNode) else ():
        name = str(plain(item)).removesuffix("#1")
        if name not in rest:
            yield Difference(item, "visits", name, f"not reached in this order; route: {' '.join(found)}")
            return


def _avoids(node: Node, seen: PlayResult, _: Names) -> Iterator[Difference]:
    ran = {name.partition("#")[0] for name in route(seen.events)}
    for item in node.items if isinstance(node, ListNode) else ():
        if plain(item) in ran:
            yield Difference(item, "avoids", f"{plain(item)} never runs", f"route: {' '.join(route(seen.events))}")


def _failed(node: Node, seen: PlayResult, _: Names) -> Iterator[Difference]:
    found = sorted({step_of(event) for event in seen.events if event.event_type == "step.failed"})
    if sorted(map(str, plain(node) or [])) != found:
        yield Difference(node, "failed", shown(plain(node)), shown(found))


def _events(node: Node, seen: PlayResult, names: Names) -> Iterator[Difference]:
    if isinstance(node, MapNode):
        counts = Counter(event.event_type for event in seen.events)
        for entry in node.entries:
            number = counts[CANONICAL.get(entry.key.text, entry.key.text)]
            if number != plain(entry.value):
                yield Difference(entry.value, f"events.{entry.key.text}", shown(plain(entry.value)), str(number))
        return
    rest = iter(seen.events)
    for number, item in enumerate(node.items if isinstance(node, ListNode) else ()):
        if not any(_is_event(item, event, names) for event in rest):
            after = "the events before it" if number else "the start"
            yield Difference(item, f"events[{number}]", shown(plain(item)), f"no such event after {after}")
            return


def _is_event(node: Node, event: Event, names: Names) -> bool:
    told = {**event.payload, **envelope(event), "type": event.event_type}
    if isinstance(node, Scalar):
        return bool(CANONICAL.get(node.text, node.text) == event.event_type)
    return not any(matched(node, told, "event", names))


def _calls(node: Node, seen: PlayResult, names: Names) -> Iterator[Difference]:
    for entry in node.entries if isinstance(node, MapNode) else ():
        made = [call for call in seen.calls if is_of(entry.key.text, call)]
        path = f"calls.{entry.key.text}"
        if isinstance(entry.value, ListNode):
            yield from matched(entry.value, [dict(call.fields) for call in made], path, names)
        elif not same(plain(entry.value), len(made)):
            yield Difference(entry.value, path, f"{plain(entry.value)} calls", f"{len(made)} calls")


def is_of(key: str, call: Call) -> bool:
    """Whether a call belongs to a task named as in `mocks`."""
    playbook, _, place = key.rpartition(":")
    step, _, task = place.partition(".")
    site = call.site
    here = not playbook or site.playbook == playbook or site.playbook.rpartition("/")[2] == playbook
    return here and site.step == step and (not task or site.task == task)


def _compensated(node: Node, seen: PlayResult, _: Names) -> Iterator[Difference]:
    if not same(plain(node), bool(seen.state.compensated)):
        yield Difference(node, "compensated", shown(plain(node)), shown(seen.state.compensated))


def _took(node: Node, seen: PlayResult, names: Names) -> Iterator[Difference]:
    took = (seen.events[-1].timestamp - seen.events[0].timestamp) / 1000 if seen.events else 0.0
    yield from matched(node, took, "took", names)


def _refused(node: Node, seen: PlayResult, _: Names) -> Iterator[Difference]:
    if seen.refused is None or str(plain(node)) not in seen.refused:
        yield Difference(node, "refused", str(plain(node)), seen.refused or "it was not refused")


_CHECKS: Mapping[str, Callable[[Node, PlayResult, Names], Iterator[Difference]]] = {
    "result": lambda node, seen, names: matched(node, expanded(seen.state.result), "result", names),
    "world": lambda node, seen, names: matched(node, seen.world, "world", names),
    "route": lambda node, seen, _: _in_order(node, "route", route(seen.events)),
    "compensations": lambda node, seen, _: _in_order(node, "compensations", compensations(seen.events)),
    "status": _status, "ctx": _ctx, "error": _error, "visits": _visits, "avoids": _avoids, "failed": _failed,
    "events": _events, "calls": _calls, "compensated": _compensated, "took": _took, "refused": _refused,
}  # fmt: skip
