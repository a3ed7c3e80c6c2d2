"""Debian's Prometheus: rules fire when they should; it scrapes a real server."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from noetl.client.local_server import local_server
from noetl.client.sync import SyncClient
from scripts.deploy import ALERTS, ROOT, rules
from tests.acceptance.running import until
from tests.server.serving import ONE, process
from tests.unit.observe.test_exporter import free_port

_UNPACKED = Path(sys.prefix, "prometheus", "usr", "bin")
_PROGRAMS = {name: shutil.which(name, path=str(_UNPACKED)) or shutil.which(name) for name in ("prometheus", "promtool")}
pytestmark = pytest.mark.skipif(
    not all(_PROGRAMS.values()), reason="no Prometheus here: scripts/prometheus.sh unpacks it"
)
_RUN = 'noetl_step_runs_total{workflow="a/b",step="s",ok="%s"}'
_SUNK = 'noetl_sink_tasks_completed_total{sink="postgres:rows",ok="%s"}'
_TOOK = 'noetl_step_duration_seconds_bucket{workflow="a/b",step="s",le="%s"}'
# Of each alert: minutes of series that make it fire, and of series that do not.
CASES: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = {
    "HighDLQGrowth": (
        {'noetl_dlq_total{kind="http",sink=""}': "0+1200x40"}, {'noetl_dlq_total{kind="http",sink=""}': "0+300x40"},
    ),
    "StepFailureRateHigh": (
        {_RUN % "true": "0+80x40", _RUN % "false": "0+20x40"}, {_RUN % "true": "0+95x40", _RUN % "false": "0+5x40"},
    ),
    "WorkerStalled": (
        {'noetl_worker_heartbeat_timestamp{worker_id="host:1"}': "0+60x5 300x35"},
        {'noetl_worker_heartbeat_timestamp{worker_id="host:1"}': "0+60x40"},
    ),
    "SinkErrorRateHigh": (
        {_SUNK % "true": "0+90x40", _SUNK % "false": "0+10x40"}, {_SUNK % "true": "0+99x40", _SUNK % "false": "0+1x40"},
    ),
    "ExecutionSLAExceeded": (
        {_TOOK % "120.0": "0+90x40", _TOOK % "300.0": "0+94x40", _TOOK % "+Inf": "0+100x40"},
        {_TOOK % "120.0": "0+90x40", _TOOK % "300.0": "0+99x40", _TOOK % "+Inf": "0+100x40"},
    ),
    "QueueStalled": (
        {'noetl_queue_age_seconds{pool="gpu"}': "0+60x40"}, {'noetl_queue_age_seconds{pool="gpu"}': "200x40"},
    ),
    "LeasesLost": (
        {'noetl_reports_late_total{workflow="a/b"}': "0+60x40"}, {'noetl_reports_late_total{workflow="a/b"}': "0+1x40"},
    ),
    "ExportLagging": (
        {'noetl_export_lag_seconds{target="clickhouse"}': "0+60x40"}, {'noetl_export_lag_seconds{target="otlp"}': "200x40"},
    ),
    "OutboxStuck": (
        {'noetl_outbox_messages{state="dead"}': "3x40"}, {'noetl_outbox_messages{state="pending"}': "9x40"},
    ),
}  # fmt: skip


def promtool(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [str(_PROGRAMS["promtool"]), *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def case(name: str, series: Mapping[str, str], fires: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    given = [{"series": one, "values": values} for one, values in series.items()]
    looked = [{"eval_time": "35m", "alertname": name, "exp_alerts": list(fires)}]
    return {"interval": "1m", "input_series": given, "alert_rule_test": looked}


def test_promtool_accepts_the_rules(tmp_path: Path) -> None:
    done = promtool("check", "rules", str(ROOT / "deploy/prometheus/alerts.yaml"), folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(ALERTS)} rules found" in done.stdout


def test_every_alert_has_its_cases() -> None:
    assert set(CASES) == {one.name for one in ALERTS}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_an_alert_fires_when_it_should_and_only_then(alert: Any, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(rules())
    bad, good = CASES[alert.name]
    for name, series in (("bad", bad), ("good", good)):
        tests = {"rule_files": ["rules.yaml"], "tests": [case(alert.name, series, [])]}
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(tests))
    assert promtool("test", "rules", "good.yaml", folder=tmp_path).returncode == 0
    done = promtool("test", "rules", "bad.yaml", folder=tmp_path)
    assert done.returncode == 1  # it was expected to be silent, and is not
    assert f'alertname="{alert.name}"' in done.stdout + done.stderr
    assert "{{" not in done.stdout + done.stderr  # its texts are filled in


@contextmanager
def prometheus(folder: Path, target: str, token: str, more: Mapping[str, Any] = {}) -> Iterator[httpx.Client]:
    """Run a Prometheus that scrapes one address; gives a client of its API.

    `more` goes over its configuration.
    """
    (folder / "token").write_text(token)
    scrapes = {
        "job_name": "noetl",
        "authorization": {"credentials_file": str(folder / "token")},
        "static_configs": [{"targets": [target.removeprefix("http://")]}],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump({
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": [str(ROOT / "deploy/prometheus/alerts.yaml")],
        "scrape_configs": [scrapes],
        **more,
    }))  # fmt: skip
    port = free_port()
    command = [
        str(_PROGRAMS["prometheus"]), f"--config.file={folder}/prometheus.yaml", f"--storage.tsdb.path={folder}/data",
        f"--web.listen-address=127.0.0.1:{port}",
    ]  # fmt: skip
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=log) as running,
        httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", timeout=60) as client,
    ):
        try:
            yield client
        finally:
            running.terminate()


def asked(client: httpx.Client, query: str) -> list[Any]:
    """Return the answer to a query; nothing while Prometheus starts."""
    try:
        answer = client.get("/query", params={"query": query})
    except httpx.TransportError:
        return []
    return list(answer.json()["data"]["result"]) if answer.status_code == 200 else []


def test_a_prometheus_scrapes_a_server_with_a_token_and_evaluates_the_rules(tmp_path: Path) -> None:
    with process(tmp_path, "up", auth="auto") as (url, _up):
        with SyncClient(url) as noetl:
            noetl.register(ONE)
            assert noetl.execute("test/one", {"n": 42}, wait_ms=30_000).status == "completed"
        assert httpx.get(f"{url}/metrics").status_code == 401
        token = local_server(url).token
        assert token
        with prometheus(tmp_path, url, token) as client:
            until(lambda: bool(asked(client, 'noetl_executions_completed_total{status="ok"} == 1')), "the scrape")
            (task,) = asked(client, "noetl_worker_tasks_completed_total")
            assert (task["metric"]["kind"], task["metric"]["ok"], task["value"][1]) == ("noop", "true", "1")

            def evaluated() -> bool:
                (group,) = client.get("/rules").json()["data"]["groups"]
                found = {one["name"]: one["health"] for one in group["rules"]}
                return found == {one.name: "ok" for one in ALERTS}

            until(evaluated, "the evaluation of all rules")
