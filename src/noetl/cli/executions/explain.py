"""`noetl explain`: explain a topic of the language, or an execution.

Formats the text on a terminal; prints plain Markdown to a file or a pipe. Exit code 2: unknown topic. The texts are in
`noetl.dsl.explain`. Tested in tests/acceptance/language/test_explain_cli.py.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from noetl.cli.arguments.options import Place
from noetl.cli.runtime.terminal import echo, escaped

if TYPE_CHECKING:
    from noetl.dsl.explain import Topic

_EXECUTION_ID = re.compile(r"\d{10,}")


def command(
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC|ID",
            help="Topic, such as http, NOE201, loop.spec.mode, tojson or ctx; or an execution ID. "
            "[default: list all topics]",
        ),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON; only for executions.")] = False,
    store: Place = None,
) -> None:
    """Explain a topic of the language, or why an execution is where it is."""
    if topic is not None and (topic == "last" or _EXECUTION_ID.fullmatch(topic)):
        from noetl.cli.output.explain_execution import explain_execution

        explain_execution(topic, store, as_json=json)
        return
    from noetl.dsl.explain import find, suggestions, topics
    from noetl.wiring.embedded import language_kinds

    known = topics(language_kinds())
    if topic is None:
        _print("\n".join(_topic_list(known)))
        return
    found = find(topic, known)
    if found is None:
        near = suggestions(topic, known)
        hint = f"Did you mean {' or '.join(near)}?" if near else "List all topics with `noetl explain`."
        echo(f"noetl: Unknown topic '{topic}'. {hint}", err=True)
        raise typer.Exit(2)
    _print(found.markdown)


def _topic_list(known: Mapping[str, Topic]) -> Iterator[str]:
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


def _print(markdown: str) -> None:
    if not sys.stdout.isatty():
        echo(markdown.rstrip("\n"))
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    plain_code = Theme({"markdown.code": "cyan", "markdown.h1": "bold", "markdown.h2": "bold underline"})
    Console(theme=plain_code).print(Markdown(escaped(markdown), code_theme="ansi_dark"))
