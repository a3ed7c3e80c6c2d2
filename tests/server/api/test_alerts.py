"""Each alert answers with an execution to look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from noetl.model.messages import Report
from noetl.observe.alerts import EXEMPLARS
from noetl.observe.series import SERIES
from noetl.settings import ServerSettings
from scripts.deploy import ALERTS
from tests.server.serving import FAILS, ONE, TWO, WAITS, in_process
from tests.unit.server.system import report_on

pytestmark = pytest.mark.asyncio
PUBLIC = ServerSettings(public_url="https://noetl.example.com")


async def test_every_rule_has_an_exemplar_and_labels_that_a_series_has() -> None:
    assert set(EXEMPLARS) == {one.name for one in ALERTS}
    known = {label for one in SERIES.values() for label in one.labels}
    assert {label for labels in EXEMPLARS.values() for label in labels} <= known


async def test_a_failing_step_leads_to_its_newest_failure(tmp_path: Path) -> None:
    async with in_process(tmp_path, PUBLIC) as served, served.embedded.run_worker(""):
        await served.until(await served.start(FAILS), "failed")
        found = await served.start(
            FAILS
        )  # after the first one has failed: the newest failure is the one that came last
        await served.until(found, "failed")
        await served.until(await served.start(ONE), "completed")
        shown = await served.json("GET", "/api/alerts/StepFailureRateHigh?workflow=test/fails&step=bad&error_rate=0.15")
        assert shown == {
            "alert": "StepFailureRateHigh",
            "execution_id": found,
            "workflow_ref": "test/fails",
            "step_id": "bad",
            "error_class": "FatalError",
            "error_rate": 0.15,
            "link": f"https://noetl.example.com/api/executions/{found}",
        }
        letters = await served.json("GET", "/api/alerts/HighDLQGrowth?kind=python&sink=")
        assert (letters["execution_id"], letters["step_id"]) == (found, "bad")
        slow = await served.json("GET", "/api/alerts/ExecutionSLAExceeded?workflow=test/one&step=one")
        assert (slow["workflow_ref"], slow["step_id"], slow["error_class"]) == ("test/one", "one", "")
        nothing = await served.json("GET", "/api/alerts/SinkErrorRateHigh?sink=postgres:rows")
        assert (nothing["execution_id"], nothing["link"]) == (None, "")
        other = await served.json("GET", "/api/alerts/StepFailureRateHigh?workflow=test/fails&step=gone")
        assert (other["execution_id"], other["step_id"]) == (found, "gone")


async def test_queued_work_and_stalled_workers_lead_to_open_executions(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        first = await served.start(TWO)
        await served.start(WAITS)
        waiting = await served.json("GET", "/api/alerts/QueueStalled?pool=default")
        assert (waiting["execution_id"], waiting["step_id"]) == (first, "one")
        assert (await served.json("GET", "/api/alerts/WorkerStalled?worker_id=w"))["execution_id"] is None
        leases = await served.services.control.claim("w", ("",), 1, 1.0)
        work = leases[0].work
        report = Report("r1", work.run_id, leases[0].epoch, "w")
        await report_on(served.services.control, work.execution_id, report)
        stalled = await served.json("GET", "/api/alerts/WorkerStalled?worker_id=w")
        assert (stalled["execution_id"], stalled["step_id"]) == (work.execution_id, "one")


async def test_an_unknown_alert_is_refused_and_every_known_one_answers(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        for name in EXEMPLARS:
            assert (await served.json("GET", f"/api/alerts/{name}"))["alert"] == name
        problem = await served.json("GET", "/api/alerts/HighDLQGrwth", status=404)
        assert "HighDLQGrowth" in problem["detail"]
