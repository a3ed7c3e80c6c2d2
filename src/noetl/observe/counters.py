"""Counters, gauges and histograms as plain numbers, converted for the page.

Cheaper to update than the library's own: counting happens on the commit path. The library is imported for the page only.
Tested in tests/unit/server/metrics/test_server_metrics.py.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import accumulate
from typing import TYPE_CHECKING

from noetl.observe.series import SERIES

if TYPE_CHECKING:
    from prometheus_client.core import Metric


class Counts(dict[tuple[str, ...], float]):
    """A counter by labels."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._series = SERIES[name]
        assert self._series.type == "counter"

    def __missing__(self, labels: tuple[str, ...]) -> float:
        return 0

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import CounterMetricFamily

        family = CounterMetricFamily(self._series.name, self._series.about, labels=self._series.labels)
        for labels, count in self.items():
            family.add_metric(labels, count)
        yield family


class Levels(dict[tuple[str, ...], float]):
    """A gauge by labels."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._series = SERIES[name]
        assert self._series.type == "gauge"

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import GaugeMetricFamily

        family = GaugeMetricFamily(self._series.name, self._series.about, labels=self._series.labels)
        for labels, level in self.items():
            family.add_metric(labels, level)
        yield family


class Spread(dict[tuple[str, ...], list[float]]):
    """A histogram by labels: a count per bucket, one above all buckets, and the sum."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._series = SERIES[name]
        assert self._series.type == "histogram"

    def __missing__(self, labels: tuple[str, ...]) -> list[float]:
        made = self[labels] = [0.0] * (len(self._series.bounds(labels)) + 2)
        return made

    def observe(self, labels: tuple[str, ...], value: float) -> None:
        counts, series = self[labels], self._series
        bounds = series.bounds(labels) if series.buckets_of else series.buckets
        counts[bisect_left(bounds, value)] += 1
        counts[-1] += value

    def collect(self) -> Iterator[Metric]:
        from prometheus_client.core import HistogramMetricFamily

        family = HistogramMetricFamily(self._series.name, self._series.about, labels=self._series.labels)
        for labels, (*counts, total) in self.items():
            bounds = [*(str(float(bound)) for bound in self._series.bounds(labels)), "+Inf"]
            family.add_metric(labels, list(zip(bounds, accumulate(counts), strict=True)), total)
        yield family


Counted = Counts | Levels | Spread


class _Collected:
    """What a page is made of, as the library wants it."""

    def __init__(self, counted: Iterable[Counted]) -> None:
        self._counted = counted

    def collect(self) -> Iterator[Metric]:
        for one in self._counted:
            yield from one.collect()


def page(counted: Iterable[Counted]) -> bytes:
    """Return series in the text format of Prometheus."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(_Collected(tuple(counted)))
    return generate_latest(registry)
