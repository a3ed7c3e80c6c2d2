"""Metrics of a server and its worker as a scraper reads them."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import httpx

from tests.preloaded import start_command
from tests.server.http.test_serve import run_one
from tests.server.serving import PATIENCE_S, process
from tests.unit.observe.test_exporter import free_port

STARTED = re.compile(r'noetl_worker_tasks_started_total\{kind="(\w+)",pool="(\w+)"\} (\S+)')


def test_the_page_of_up_has_what_its_worker_counts(tmp_path: Path) -> None:
    with process(tmp_path, "up") as (url, _up):
        assert run_one(url) == "42"
        page = httpx.get(f"{url}/metrics").text
        assert STARTED.findall(page) == [("noop", "default", "1.0")]
        assert 'noetl_step_runs_total{ok="true",step="one",workflow="test/one"} 1.0' in page
        for series in (
            "noetl_commit_messages_count",
            "noetl_commit_duration_seconds_count",
            'noetl_state_cache_total{outcome="hit"}',
        ):
            [value] = re.findall(rf"^{re.escape(series)} (\S+)$", page, re.MULTILINE)
            assert float(value) >= 1
        assert 'noetl_claim_wait_seconds_count{step="one",workflow="test/one"} 1.0' in page
        assert len(re.findall(r'noetl_worker_heartbeat_timestamp\{worker_id="[^"]+"\} ', page)) == 1


SAVES = """
apiVersion: noetl.io/v10
kind: Playbook
metadata: {name: saves, path: test/saves}
workflow:
  - step: save
    loop: {in: "{{ range(4) }}", iterator: n}
    tool: {kind: artifact, action: put, data: "{{ iter.n }}"}
"""


def test_the_sink_of_each_loop_item_is_measured(tmp_path: Path) -> None:
    with process(tmp_path, "up") as (url, _up):
        body = {"content": SAVES, "wait_ms": 30_000}
        assert httpx.post(f"{url}/api/execute", json=body, timeout=60).json()["status"] == "completed"
        page = httpx.get(f"{url}/metrics").text
    assert 'noetl_worker_sink_duration_seconds_count{sink="artifact"} 4.0' in page


def test_a_server_and_a_worker_have_ports_of_their_own(tmp_path: Path) -> None:
    ports = [free_port(), free_port()]
    with process(tmp_path, "serve", environment={"NOETL_METRICS_PORT": str(ports[0])}) as (url, _server):
        environment = {**os.environ, "NOETL_METRICS_PORT": str(ports[1]), "NOETL_METRICS_PATH": "/numbers"}
        worker = start_command("worker", "--server", url, folder=tmp_path, environment=environment, text=True)
        with worker:
            try:
                assert run_one(url) == "42"
                of_server = httpx.get(f"http://127.0.0.1:{ports[0]}/metrics").text
                assert 'noetl_executions_completed_total{status="ok",workflow="test/one"} 1.0' in of_server
                assert STARTED.findall(of_server) == []
                of_worker = httpx.get(f"http://127.0.0.1:{ports[1]}/numbers").text
                assert STARTED.findall(of_worker) == [("noop", "default", "1.0")]
            finally:
                worker.send_signal(signal.SIGTERM)
                assert worker.wait(PATIENCE_S) == 0


def test_metrics_can_be_off(tmp_path: Path) -> None:
    with process(tmp_path, "up", environment={"NOETL_METRICS_ENABLED": "false"}) as (url, _up):
        answer = httpx.get(f"{url}/metrics")
        assert answer.status_code == 404
        assert "NOETL_METRICS_ENABLED" in answer.text
