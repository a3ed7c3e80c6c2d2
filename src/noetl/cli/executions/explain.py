"""`noetl explain`: tells what a tool kind, a diagnostic, a field, a filter or a scope is, from the code itself; or an execution.

On a terminal the text is set with headings and colours; into a file or a pipe goes plain Markdown. Exit code 0: explained; 2:
there is no such topic. The texts are `noetl.dsl.explain`. Tested in tests/acceptance/test_explain_cli.py.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from noetl.cli.common.store import Place

if TYPE_CHECKING:
    from noetl.dsl.explain import Topic

_EXECUTION = re.compile(r"\d{10,}")


def command(
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC|ID",
            help="For instance http, NOE201, loop.spec.mode, tojson, ctx; or an execution. Without it: every topic.",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs; for executions only.")] = False,
    store: Place = None,
) -> None:
    """Explain a code, a kind, a field, a filter, a scope; or why an execution is where it is."""
    if topic is not None and (topic == "last" or _EXECUTION.fullmatch(topic)):
        from noetl.cli.output.explain_execution import show

        show(topic, store, as_json=json)
        return
    from noetl.dsl.explain import find, suggestions, topics
    from noetl.wiring import language_kinds

    known = topics(language_kinds())
    if topic is None:
        _show("\n".join(_listed(known)))
        return
    found = find(topic, known)
    if found is None:
        near = suggestions(topic, known)
        said = f"Did you mean {' or '.join(near)}?" if near else "`noetl explain` without a topic lists them all."
        typer.echo(f"noetl: there is nothing called '{topic}' to explain. {said}", err=True)
        raise typer.Exit(2)
    _show(found.markdown)


def _listed(known: Mapping[str, Topic]) -> Iterator[str]:
    """Give the topics by what they are, each by its own name."""
    from noetl.dsl.explain import CATEGORIES

    for category, heading in CATEGORIES.items():
        entries = [entry for topic in known.values() for entry in topic.entries if entry.category == category]
        if category == "value":
            continue
        yield f"# {heading}\n"
        if category in ("kind", "diagnostic", "scope"):
            yield from dict.fromkeys(f"- `{entry.title}`: {entry.summary}" for entry in entries)
        else:
            yield ", ".join(dict.fromkeys(f"`{entry.title}`" for entry in entries))
        yield ""
    yield "`noetl explain TOPIC` explains one of them."


def _show(markdown: str) -> None:
    if not sys.stdout.isatty():
        typer.echo(markdown.rstrip("\n"))
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    plain_code = Theme({"markdown.code": "cyan", "markdown.h1": "bold", "markdown.h2": "bold underline"})
    Console(theme=plain_code).print(Markdown(markdown, code_theme="ansi_dark"))
