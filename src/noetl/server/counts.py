"""Plain numbers under the names and labels of metrics, which become the library's when somebody looks.

Counting is done while others wait, so it costs as little as it can. Tested in tests/unit/server/test_metrics.py.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric


class Counts(dict[tuple[str, ...], float]):
    """What is counted under one name, by labels: plain numbers, until somebody looks."""

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
    """How values are spread, by labels: a number for each bucket, one for what is above all, and the sum."""

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
