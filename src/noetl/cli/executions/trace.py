"""`noetl trace`: the trace of an execution, made of its log, also after it ended.

Prints the spans as a tree, or sends them to a receiver. Tested in tests/acceptance/executions/test_trace_cli.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from noetl.cli.arguments.options import AsJson, ExecutionId, Place
from noetl.cli.runtime.environment import environment
from noetl.cli.runtime.store import read_history, resolve_id
from noetl.cli.runtime.terminal import echo
from noetl.model.errors import InvalidInput
from noetl.settings import settings as process_settings

if TYPE_CHECKING:
    from noetl.observe.traces.spans import Span
    from noetl.ports import History
    from noetl.settings import Settings

_SHOWN = ("step_id", "task", "loop_index", "attempt", "target_step", "condition", "outcome", "spec_signature")


def command(
    id: ExecutionId,
    to: Annotated[
        str | None,
        typer.Option(
            "--to",
            metavar="URL",
            help="Send the spans to this receiver, by OTLP over HTTP. [env: NOETL_TRACING_ENDPOINT] [default: print them]",
        ),
    ] = None,
    json: AsJson = False,
    store: Place = None,
) -> None:
    """Print the trace of an execution, or send it to a receiver."""
    settings = process_settings(environment(), Path.cwd())
    endpoint = to or ("" if json else settings.tracing.endpoint)

    async def job(history: History) -> None:
        from noetl.cli.output.format import to_json
        from noetl.cli.runtime.environment import reader_mask
        from noetl.observe.traces.history import read_trace

        spans = await read_trace(history, await resolve_id(history, id), settings.tracing.of_executions)
        if json:
            echo("\n".join(to_json(reader_mask().data(span)) for span in spans))
            return
        if endpoint:
            await _send(settings, endpoint, spans)
        else:
            echo("\n".join(reader_mask().line(line) for line in _tree(spans)))
        if settings.tracing.url:
            echo(settings.tracing.link(spans[0].trace_id), err=True)

    read_history(store, job)


async def _send(settings: Settings, endpoint: str, spans: Sequence[Span]) -> None:
    from noetl.extras import install_command
    from noetl.observe.traces.sending import open_sender

    if not endpoint.startswith(("http://", "https://")):
        raise InvalidInput(f"--to is {endpoint!r}. Write a URL such as http://localhost:4318.")
    sender = open_sender(settings, endpoint)
    if sender is None:
        raise InvalidInput(f"Sending traces needs the extra `otel`. Install it with: {install_command('otel')}")
    async with sender:
        await sender.send(spans)
    echo(f"noetl: sent {len(spans)} spans of trace {spans[0].trace_id} to {endpoint}", err=True)


def _tree(spans: Sequence[Span]) -> Iterator[str]:
    """Yield the spans as lines, each below its parent."""
    below: dict[str, list[Span]] = {}
    ids = {span.span_id for span in spans}
    for span in spans:
        below.setdefault(span.parent_id if span.parent_id in ids else "", []).append(span)
    yield f"trace {spans[0].trace_id}"
    waiting = [(span, 0) for span in reversed(below.get("", []))]
    while waiting:
        span, depth = waiting.pop()
        yield "  " * depth + _line(span)
        waiting += [(child, depth + 1) for child in reversed(below.get(span.span_id, []))]


def _line(span: Span) -> str:
    shown = [f"{key}={span.attributes[key]}" for key in _SHOWN if key in span.attributes]
    what = span.attributes.get("workflow_ref", "") if span.name == "server.execution" else " ".join(shown)
    failed = f" ✗ {span.error}" if span.error else ""
    return f"{span.name} {what} {span.end - span.start} ms{failed}"
