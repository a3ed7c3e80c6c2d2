"""Step-runs of a track as rows, and as columns where there are very many.

Tested in tests/scenarios/test_screen_tracks.py and tests/server/api/test_moments.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from noetl.engine.queries.track import Span
from noetl.wire.screens.moments import PlainRuns, SpanItems, SpanRow

MANY: Final = 2_000  # step-runs of an answer; of more, the ordinary ones are columns: a sixth of the bytes


def rows(spans: Iterable[Span]) -> list[SpanRow]:
    """Return step-runs as rows."""
    return [_row(span) for span in spans]


def packed(spans: Sequence[Span]) -> tuple[list[SpanRow], PlainRuns]:
    """Return the step-runs that are out of the ordinary as rows, and the others as columns."""
    others, plain, names = list[SpanRow](), _columns(), dict[str, int]()
    for span in spans:
        if not _is_plain(span) or span.started is None or span.ended is None:
            others.append(_row(span))
            continue
        event, ms = span.scheduled
        plain.run.append(span.run)
        plain.step.append(names.setdefault(span.step, len(names)))
        plain.worker.append(names.setdefault(span.worker, len(names)))
        plain.after.append(span.after)
        plain.scheduled.append(event)
        plain.scheduled_ms.append(ms)
        plain.started.append(span.started[0] - event)
        plain.started_ms.append(span.started[1] - ms)
        plain.ended.append(span.ended[0] - event)
        plain.ended_ms.append(span.ended[1] - ms)
    plain.names.extend(names)
    return others, plain


def _columns() -> PlainRuns:
    return PlainRuns(
        names=[],
        run=[],
        step=[],
        worker=[],
        after=[],
        scheduled=[],
        scheduled_ms=[],
        started=[],
        started_ms=[],
        ended=[],
        ended_ms=[],
    )


def _is_plain(span: Span) -> bool:
    if span.started is None or span.ended is None or len(span.attempts) != 1:
        return False
    if span.state != "done" or span.role != "step" or span.waits or span.children or span.total is not None:
        return False
    since, until, is_ok, _task = span.attempts[0]
    return is_ok is True and (since, until) == (span.started[1], span.ended[1]) and span.of is span.child is None


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
