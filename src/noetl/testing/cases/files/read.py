"""Read a test file: its cases, their shared inputs, and its problems.

Expectations stay nodes, so that a difference has a position. Tested in tests/unit/testing/test_case_files.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final, get_args

from msgspec import Struct, field

from noetl.dsl.reading.nodes import ListNode, MapNode, Node, Scalar, Source, plain
from noetl.dsl.reading.parse import parse
from noetl.engine.state.writes import merge
from noetl.model.outcome import ErrorKind
from noetl.testing.cases.files.levels import FILE
from noetl.testing.cases.files.problems import FileProblem, at, shape_troubles, unknown

SUFFIXES: Final = (".test.yaml", ".test.yml")
_UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_SAYS: Final = ("signal", "patch", "cancel", "pause", "resume")
_KINDS: Final = get_args(ErrorKind)
_BESIDE: Final = ("data", "run", "compensate", "abandon")


class Given(Struct, frozen=True):
    """Inputs of a play; times are milliseconds."""

    workload: dict[str, Any] = {}
    mocks: dict[str, Any] = {}
    cassette: str | None = None
    messages: list[dict[str, Any]] = []
    keychain: dict[str, dict[str, Any]] = {}
    settings: dict[str, Any] = {}
    real: list[str] = []
    unmocked: str = "error"
    world: dict[str, Any] = {}
    effects: dict[str, dict[str, Any]] = {}

    def over(self, own: Given, written: MapNode) -> Given:
        """Merge the inputs of a case over those of the file."""
        return Given(
            workload=merge(self.workload, own.workload),
            mocks={**self.mocks, **own.mocks},
            cassette=own.cassette if "cassette" in written else self.cassette,
            messages=own.messages if "messages" in written else self.messages,
            keychain={**self.keychain, **own.keychain},
            settings=merge(self.settings, own.settings),
            real=own.real if "real" in written else self.real,
            unmocked=own.unmocked if "unmocked" in written else self.unmocked,
            world={**self.world, **own.world},
            effects={**self.effects, **own.effects},
        )


class Case(Struct, frozen=True):
    """One play and its expectations."""

    name: str
    at: Node
    given: Given
    expect: MapNode
    skip: str | None = None


class Invariant(Struct, frozen=True):
    """Condition that must hold at the end of every play of a saga."""

    name: str
    check: str
    when: str | None
    at: Node


class Saga(Struct, frozen=True):
    """Configuration of the saga test."""

    at: Node
    invariants: tuple[Invariant, ...]
    only: frozenset[str] = frozenset()
    never: frozenset[str] = frozenset()
    error: Any = "client_error"


class TestFile(Struct, frozen=True):
    """Content of a test file; nothing is played if it has problems."""

    __test__ = False

    source: Source
    root: MapNode
    playbook: str  # relative to the folder of the file
    given: Given = Given()
    cases: tuple[Case, ...] = ()
    saga: Saga | None = None
    troubles: list[FileProblem] = field(default_factory=list)


def read_tests(text: bytes | str, file: str, name: str) -> TestFile:
    """Read a test file; the playbook's default name derives from `name`."""
    document = parse(text, file)
    source = document.source
    root = document.root if isinstance(document.root, MapNode) else MapNode(0, 0, ())
    usual = next((name.removesuffix(suffix) + suffix[5:] for suffix in SUFFIXES if name.endswith(suffix)), "")
    made = TestFile(source, root, str(plain(root.get("playbook")) or usual))
    for problem in document.problems:
        made.troubles.append(at(source, Node(problem.start, problem.end), problem.message.replace("playbook", "file")))
    if not document.problems:
        made.troubles.extend(shape_troubles(source, document.root, FILE))
    if made.troubles:
        return made
    reading = _Reading(source, made.troubles)
    given = reading.given(root)
    cases = tuple(reading.case(node, given) for node in _maps(root.get("tests")))
    reading.file(root, made.playbook, cases)
    return TestFile(source, root, made.playbook, given, cases, reading.saga(root.get("saga")), made.troubles)


class _Reading(Struct, frozen=True):
    source: Source
    troubles: list[FileProblem]

    def wrong(self, node: Node, message: str, fix: str = "") -> None:
        self.troubles.append(at(self.source, node, message, fix))

    def file(self, root: MapNode, playbook: str, cases: tuple[Case, ...]) -> None:
        if not cases and "saga" not in root:
            self.wrong(root, "The file has neither 'tests' nor 'saga'.", "Add at least one case under `tests`.")
        if not playbook:
            self.wrong(root, "The file names no playbook.", "Add `playbook: FILE`, or name the file `NAME.test.yaml`.")
        seen: set[str] = set()
        for case in cases:
            if case.name in seen:
                self.wrong(case.at, f"Two cases are named `{case.name}`.", "Use unique names.")
            seen.add(case.name)

    def given(self, node: MapNode) -> Given:
        unmocked = plain(node.get("unmocked"))
        cassette = plain(node.get("cassette"))
        return Given(
            workload=plain(node.get("workload")) or {},
            mocks={entry.key.text: self.mock(entry.value) for entry in _entries(node.get("mocks"))},
            cassette=None if cassette is None else str(cassette),
            messages=sorted(map(self.message, _maps(node.get("messages"))), key=lambda one: float(one["at"])),
            keychain=plain(node.get("keychain")) or {},
            settings=plain(node.get("settings")) or {},
            real=[str(kind) for kind in plain(node.get("real")) or ()],
            unmocked="error" if unmocked is None else str(unmocked),
            world=plain(node.get("world")) or {},
            effects=plain(node.get("effects")) or {},
        )

    def mock(self, node: Node) -> Any:
        if isinstance(node, ListNode):
            return [self.outcome(one) for one in node.items]
        items = node.get("items") if isinstance(node, MapNode) else None
        if not isinstance(items, MapNode):
            return self.outcome(node)
        found = {entry.key.text: self.mock(entry.value) for entry in items}
        own = {name: value for name, value in self.outcome(node).items() if name != "items"}
        return {"items": {"else": own, **found} if own else found}

    def outcome(self, node: Node) -> dict[str, Any]:
        found: dict[str, Any] = dict(plain(node) or {})
        if isinstance(node, MapNode):
            ways = [name for name in ("ok", "error", "hang", "real") if name in node]
            if len(ways) > 1:
                said = " and ".join(f"`{name}`" for name in ways)
                self.wrong(node, f"An outcome is one of {said}, not both.", "Remove one of them.")
            takes = node.get("takes")
            if takes is not None:
                found["takes"] = self.duration(takes)
            error = node.get("error")
            if error is not None:
                found["error"] = self.error(error)
        return found

    def error(self, node: Node) -> Any:
        """Convert an error: its kind, or a map. Reports unknown kinds."""
        place = node.get("kind") if isinstance(node, MapNode) else node
        kind = str(plain(place))
        if kind not in _KINDS:
            self.troubles.append(unknown(self.source, place or node, "kind of error", kind, _KINDS))
        if not isinstance(node, MapNode):
            return kind
        found: dict[str, Any] = {name: value for name, value in plain(node).items() if value is not None}
        return found | {name: str(found[name]) for name in ("kind", "message", "code") if name in found}

    def message(self, node: MapNode) -> dict[str, Any]:
        found: dict[str, Any] = dict(plain(node))
        said = [name for name in _SAYS if found.get(name) not in (None, False)]
        if len(said) != 1:
            self.wrong(node, f"A message is one of {', '.join(_SAYS)}.", "Use exactly one of them besides `at`.")
        moment = node.get("at")
        kept = {name: found[name] for name in said} | {name: found[name] for name in _BESIDE if name in found}
        kept |= {name: str(kept[name]) for name in ("signal", "cancel") if name in kept}
        return {**kept, "at": self.duration(moment) if moment is not None else 0.0}

    def duration(self, node: Node) -> float:
        value = node.value if isinstance(node, Scalar) else None
        found = duration_ms(value)
        if found is None:
            self.wrong(
                node, f"`{value}` is not a duration.", "Use seconds, or a number with ms, s, m, h, d or w: `1h30m`."
            )
        return found or 0.0

    def case(self, node: MapNode, common: Given) -> Case:
        expect = node.get("expect")
        assert isinstance(expect, MapNode)  # its shape was checked
        if not expect.entries:
            self.wrong(expect, "The case has no expectations.", "Add one, such as `status: completed`.")
        skip = plain(node.get("skip"))
        why = None if skip in (None, False) else "" if skip is True else str(skip)
        name = node.get("name")
        return Case(str(plain(name)), name or node, common.over(self.given(node), node), expect, why)

    def saga(self, node: Node | None) -> Saga | None:
        if not isinstance(node, MapNode):
            return None
        invariants = tuple(
            Invariant(str(plain(one.get("name"))), str(plain(one.get("check"))), plain(one.get("when")), one)
            for one in _maps(node.get("invariants"))
        )
        only, never = (frozenset(map(str, plain(node.get(name)) or ())) for name in ("only", "except"))
        error = node.get("error")
        return Saga(node, invariants, only, never, "client_error" if error is None else self.error(error))


def duration_ms(value: Any) -> float | None:
    """Parse a duration: seconds, or a string such as `1h30m`; None if invalid."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value * 1_000.0
    text = str(value).replace(" ", "")
    parts = _PART.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)


def _maps(node: Node | None) -> Iterator[MapNode]:
    for item in node.items if isinstance(node, ListNode) else ():
        if isinstance(item, MapNode):
            yield item


def _entries(node: Node | None) -> Iterator[Any]:
    yield from node.entries if isinstance(node, MapNode) else ()


def texts(node: Node | None) -> Iterator[Scalar]:
    """Iterate over the scalars of a list."""
    for item in node.items if isinstance(node, ListNode) else ():
        if isinstance(item, Scalar):
            yield item
