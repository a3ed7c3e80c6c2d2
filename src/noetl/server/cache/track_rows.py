"""Step-runs of a track as rows, and as columns where there are very many.

Tested in tests/scenarios/test_screen_tracks.py and tests/server/api/test_moments.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from noetl.engine.queries.track import Mark, Span
from noetl.wire.screens.moments import PlainRuns, SpanItems, SpanRow

MANY: Final = 2_000  # step-runs of an answer; of more, the ordinary ones are columns: a sixth of the bytes


def rows(spans: Iterable[Span]) -> list[SpanRow]:
    """Return step-runs as rows."""
    return [_row(span) for span in spans]


def packed(spans: Sequence[Span]) -> tuple[list[SpanRow], PlainRuns]:
    """Return what is out of the ordinary as rows, and the others as columns."""
    others, plain = list[Span](), list[tuple[Span, Mark, Mark]]()
    for span in spans:
        found = _ends_of(span)
        if found is None:
            others.append(span)
        else:
            plain.append((span, *found))
    names: dict[str, int] = {}
    steps = [names.setdefault(span.step, len(names)) for span, _, _ in plain]
    workers = [names.setdefault(span.worker, len(names)) for span, _, _ in plain]
    columns = PlainRuns(
        names=[*names],
        run=[span.run for span, _, _ in plain],
        step=steps,
        worker=workers,
        after=[span.after for span, _, _ in plain],
        scheduled=[span.scheduled[0] for span, _, _ in plain],
        scheduled_ms=[span.scheduled[1] for span, _, _ in plain],
        started=[started[0] - span.scheduled[0] for span, started, _ in plain],
        started_ms=[started[1] - span.scheduled[1] for span, started, _ in plain],
        ended=[ended[0] - span.scheduled[0] for span, _, ended in plain],
        ended_ms=[ended[1] - span.scheduled[1] for span, _, ended in plain],
    )
    return rows(others), columns


def _ends_of(span: Span) -> tuple[Mark, Mark] | None:
    """Return start and end of an ordinary step-run."""
    started, ended = span.started, span.ended
    if started is None or ended is None or len(span.attempts) != 1 or span.waits or span.children:
        return None
    if span.state != "done" or span.role != "step" or span.total is not None:
        return None
    since, until, is_ok, _task = span.attempts[0]
    if is_ok is not True or (since, until) != (started[1], ended[1]) or span.of is not None or span.child is not None:
        return None
    return started, ended


def _row(span: Span) -> SpanRow:
    items = None
    if span.total is not None:
        items = SpanItems(total=span.total, ended=span.items_ended, failed=span.items_failed)
    return SpanRow(
        run=span.run,
        step=span.step,
        scheduled=span.scheduled,
        started=span.started,
        ended=span.ended,
        state=span.state,
        worker=span.worker,
        role=span.role,
        attempts=[(since, until, is_ok) for since, until, is_ok, _ in span.attempts],
        waits=list(span.waits),
        child=span.child,
        children=span.children,
        of=span.of,
        after=span.after,
        items=items,
    )
