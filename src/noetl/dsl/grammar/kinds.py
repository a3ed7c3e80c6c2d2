"""Tool kinds as data: inputs, outcome and documentation.

`noetl.tools` builds these from each kind's input model and `wiring` passes them in, so the core never imports a tool.
Tested in tests/tools/test_registry.py.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from noetl.dsl.grammar.types import Level


class KindExample(Struct, frozen=True):
    """A task that uses the kind, as YAML, with a one-line title."""

    title: str
    yaml: str


class Need(Struct, frozen=True):
    """`fields` are required where `field` has this `value` (None: any value)."""

    field: str
    fields: tuple[str, ...]
    value: str | None = None
    instead: tuple[str, ...] = ()  # names in `input` that satisfy it too


class Kind(Struct, frozen=True):
    """A tool kind as seen by the checks, the docs and the editor."""

    name: str
    summary: str
    description: str
    input: Level  # `open` where the kind accepts any field
    one_of: tuple[tuple[str, ...], ...] = ()  # exactly one field of each group is required
    at_most_one: tuple[tuple[str, ...], ...] = ()  # fields of a group exclude each other
    needs: tuple[Need, ...] = ()  # fields that require other fields
    result: Mapping[str, str] | None = None  # field → meaning; None: the result is free-form
    helper: tuple[str, Mapping[str, str]] | None = None  # ("http", {"status": …}): the kind's own part of `outcome`
    extra: str = ""  # optional dependency that installs the library, e.g. "duckdb"
    examples: tuple[KindExample, ...] = ()
    built: bool = True  # False: described for checks and editors, but this version cannot run it
    suspends: bool = False  # holds no worker while it waits
    version: str = ""  # of the package that it comes from; empty: it is built in


Kinds = Mapping[str, Kind]
