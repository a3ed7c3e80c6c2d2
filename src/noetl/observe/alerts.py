"""Alerts by name, with the labels that find an execution to look at.

The rules in deploy/ are written for these names; `GET /api/alerts/{name}` answers for each. Tested in
tests/server/api/test_alerts.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

EXEMPLARS: Final[Mapping[str, tuple[str, ...]]] = {
    "HighDLQGrowth": ("kind", "sink"),
    "StepFailureRateHigh": ("workflow", "step"),
    "WorkerStalled": ("worker_id",),
    "SinkErrorRateHigh": ("sink",),
    "ExecutionSLAExceeded": ("workflow", "step"),
    "QueueStalled": ("pool",),
    "LeasesLost": ("workflow",),
    "ExportLagging": (),
    "OutboxStuck": (),
}
