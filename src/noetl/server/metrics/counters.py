"""Counters and histograms as plain numbers, converted when the page is read.

Cheaper to update than the library's own: counting happens on the commit path. Tested in tests/unit/server/metrics/test_server_metrics.py.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric


class Counts(dict[tuple[str, ...], float]):
    """A counter by labels."""

    def __init__(self, name: str, text: str, labels: Sequence[str]) -> None:
        super().__init__()
        self._about = (name, text, labels)

    def __missing__(self, labels: tuple[str, ...]) -> float:
        return 0

    def collect(self) -> Iterator[Metric]:
        name, text, names = self._about
        family = CounterMetricFamily(name, text, labels=names)
        for labels, count in self.items():
            family.add_metric(labels, count)
        yield family


class Spread(dict[tuple[str, ...], list[float]]):
    """A histogram by labels: a count per bucket, one above all buckets, and the sum."""

    def __init__(self, name: str, text: str, labels: Sequence[str], buckets: Sequence[float]) -> None:
        super().__init__()
        self._about = (name, text, labels)
        self._buckets = buckets

    def __missing__(self, labels: tuple[str, ...]) -> list[float]:
        made = self[labels] = [0.0] * (len(self._buckets) + 2)
        return made

    def observe(self, labels: tuple[str, ...], value: float) -> None:
        counts = self[labels]
        counts[bisect_left(self._buckets, value)] += 1
        counts[-1] += value

    def collect(self) -> Iterator[Metric]:
        name, text, names = self._about
        family = HistogramMetricFamily(name, text, labels=names)
        bounds = [*(str(float(bound)) for bound in self._buckets), "+Inf"]
        for labels, (*counts, total) in self.items():
            family.add_metric(labels, list(zip(bounds, accumulate(counts), strict=True)), total)
        yield family
