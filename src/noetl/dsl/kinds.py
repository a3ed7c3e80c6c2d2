"""What the language knows of a tool kind: its inputs, its outcome and its documentation, as data.

`noetl.tools` makes these from each kind's own input model and `wiring` hands them in, so the core never imports a tool.
Tested in tests/tools/test_registry.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from noetl.dsl.types import Level


class KindExample(Struct, frozen=True):
    """A task that uses the kind, as YAML, with one line that says what it shows."""

    title: str
    yaml: str


class Need(Struct, frozen=True):
    """Where `field` has that `value` (any, if None; a default counts as written), `fields` must be there too."""

    field: str
    fields: tuple[str, ...]
    value: str | None = None


class Kind(Struct, frozen=True):
    """A tool kind as the checks, the docs and the editor see it."""

    name: str
    summary: str
    description: str
    input: Level  # `open` where the kind takes free fields
    one_of: tuple[tuple[str, ...], ...] = ()  # exactly one field of each group must be there
    at_most_one: tuple[tuple[str, ...], ...] = ()  # two fields of a group contradict each other
    needs: tuple[Need, ...] = ()  # fields that must come together
    result: Mapping[str, str] | None = None  # field → meaning; None: the result is free-form
    helper: tuple[str, Mapping[str, str]] | None = None  # ("http", {"status": …}): the kind's own part of `outcome`
    extra: str = ""  # the optional install that brings the library, e.g. "duckdb"
    examples: tuple[KindExample, ...] = ()
    suspends: bool = False  # holds no worker while it waits


Kinds = Mapping[str, Kind]
