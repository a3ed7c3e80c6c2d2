"""Debian's Alertmanager delivers real failures to a webhook."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from noetl.client.local_server import local_server
from noetl.client.sync import SyncClient
from scripts.deploy import rules
from tests.acceptance.running import until
from tests.observe.test_prometheus import asked, prometheus
from tests.preloaded import start_command
from tests.server.serving import FAILS, ONE, playbook, process
from tests.unit.observe.test_exporter import free_port

_UNPACKED = Path(sys.prefix, "prometheus", "usr", "bin")
_NAME = "prometheus-alertmanager"
_INSTALLED = shutil.which(_NAME)
_IS_UNPACKED = (_UNPACKED / _NAME).exists() and sys.platform == "linux"
pytestmark = pytest.mark.skipif(
    not (_INSTALLED or _IS_UNPACKED), reason="no Alertmanager here: scripts/prometheus.sh unpacks it"
)
_DEAD, _LATE = (
    "sum by (kind, sink) (rate(noetl_dlq_total[5m])) ",
    "time() - max by (worker_id) (noetl_worker_heartbeat_timestamp) ",
)
_SLOW = "histogram_quantile(0.95, sum by (workflow, step, le) (rate(noetl_step_duration_seconds_bucket[10m]))) "
# Alerts whose thresholds take minutes or thousands of failures: what is compared, with what, and with what here.
SOONER = {
    "HighDLQGrowth": (_DEAD, "> 10", "> 0"),
    "WorkerStalled": (_LATE, "> 60", "> 15"),
    "ExecutionSLAExceeded": (_SLOW, ">= 300", ">= 1"),
}
LOSES = playbook(
    "  - step: save\n    tool: {kind: duckdb, database: ':memory:', table: nowhere, mode: insert, values: {a: 1}}\n",
    "loses",
)
SLOW = playbook("  - step: wait\n    tool: {kind: sleep, seconds: 1.2}\n", "slow")
LONG = playbook("  - step: hang\n    tool: {kind: shell, command: sleep 600}\n", "long")
FIELDS = {"alert", "execution_id", "workflow_ref", "step_id", "error_class", "error_rate", "link"}


@contextmanager
def webhook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Run a server that keeps the alerts that it gets."""
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.extend(json.loads(self.rfile.read(int(self.headers["Content-Length"])))["alerts"])
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None:
            return

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/", got
        finally:
            server.shutdown()
            thread.join()


def program() -> list[str]:
    """Return a command; an unpacked program finds its files in their place."""
    if _INSTALLED:
        return [_INSTALLED]
    share = f"mount --bind {_UNPACKED.parent / 'share'} /usr/share"  # for this process alone
    command = ["unshare", "--mount", "--map-root-user", "sh", "-c", f'{share} && exec "$0" "$@"']
    return [*command, str(_UNPACKED / _NAME)]


@contextmanager
def alertmanager(folder: Path, receiver: str) -> Iterator[str]:
    """Run an Alertmanager with one receiver; gives its address."""
    config = {
        "route": {"receiver": "test", "group_wait": "0s", "group_interval": "1s", "group_by": ["..."]},
        "receivers": [{"name": "test", "webhook_configs": [{"url": receiver}]}],
    }
    (folder / "alertmanager.yaml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    command = [
        *program(), f"--config.file={folder}/alertmanager.yaml", f"--storage.path={folder}/alerts",
        f"--web.listen-address={address}", "--cluster.listen-address=",
    ]  # fmt: skip
    with (folder / "alertmanager.log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as running:
        try:
            yield address
        finally:
            running.terminate()


@contextmanager
def worker(folder: Path, url: str) -> Iterator[subprocess.Popen[str]]:
    """Run a worker as a process."""
    environment = {**os.environ, "NOETL_HOME": str(folder / "worker")}
    with start_command("worker", "--server", url, folder=folder, environment=environment, text=True) as running:
        try:
            yield running
        finally:
            running.kill()


def sooner() -> str:
    """Return the rules with thresholds and durations of a test."""
    found = yaml.safe_load(rules())
    for rule in found["groups"][0]["rules"]:
        rule["for"] = "0s"
        begin, threshold, least = SOONER.get(rule["alert"], (rule["expr"], "", ""))
        assert rule["expr"] == begin + threshold
        rule["expr"] = begin + least
    return yaml.safe_dump(found)


class Watched:
    """A server whose alerts reach a webhook."""

    def __init__(self, url: str, token: str, client: httpx.Client, got: list[dict[str, Any]]) -> None:
        self.noetl = SyncClient(url)
        self.url = url
        self.client = client
        self._headers = {"Authorization": f"Bearer {token}"}
        self._got = got

    def executions(self, path: str) -> list[str]:
        """Run a playbook twice: a rate needs two samples."""
        first = self.noetl.execute(path, {}, wait_ms=30_000).execution_id
        until(lambda: bool(asked(self.client, f'noetl_executions_completed_total{{workflow="{path}"}}')), "a scrape")
        return [first, self.noetl.execute(path, {}, wait_ms=30_000).execution_id]

    def alert(self, **labels: str) -> tuple[dict[str, Any], dict[str, Any]]:
        """Wait for an alert; return its annotations, and what its link shows."""
        until(lambda: any(labels.items() <= one["labels"].items() for one in self._got), f"the alert {labels}")
        found = next(one for one in self._got if labels.items() <= one["labels"].items())
        assert found["status"] == "firing"
        said = found["annotations"]
        assert said["link"].startswith(f"{self.url}/api/alerts/{labels['alertname']}")
        shown = self.get(said["link"])
        assert shown.keys() == FIELDS
        assert shown["link"].endswith(f"/api/executions/{shown['execution_id']}")
        assert self.get(self.url + shown["link"])["path"] == shown["workflow_ref"]
        return said, shown

    def get(self, url: str) -> dict[str, Any]:
        found: dict[str, Any] = httpx.get(url, headers=self._headers, timeout=30).json()
        return found

    def events(self, execution_id: str) -> list[str]:
        page = self.get(f"{self.url}/api/executions/{execution_id}/events")
        return [event["event_type"] for event in page["events"]]

    def has_fired(self, **labels: str) -> bool:
        return any(labels.items() <= one["labels"].items() for one in self._got)


@contextmanager
def watched(folder: Path, url: str) -> Iterator[Watched]:
    """Watch a server with a Prometheus and an Alertmanager."""
    token = local_server(url).token
    assert token
    (folder / "rules.yaml").write_text(sooner())
    with webhook() as (receiver, got), alertmanager(folder, receiver) as manager:
        more = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s", "external_labels": {"noetl_url": url}},
            "rule_files": [str(folder / "rules.yaml")],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [manager]}]}]},
        }
        with prometheus(folder, url, token, more) as client:
            found = Watched(url, token, client, got)
            with found.noetl:
                yield found


def test_real_failures_reach_a_webhook_with_an_execution_to_look_at(tmp_path: Path) -> None:
    with (
        process(tmp_path, "serve", auth="auto") as (url, _server),
        worker(tmp_path, url) as running,
        watched(tmp_path, url) as found,
    ):
        for playbook in (FAILS, ONE, LOSES, SLOW, LONG):
            found.noetl.register(playbook)
        failed, unsaved, slow, fine = map(found.executions, ("test/fails", "test/loses", "test/slow", "test/one"))

        said, shown = found.alert(alertname="StepFailureRateHigh", step="bad", workflow="test/fails")
        assert (said["workflow_ref"], said["step_id"]) == ("test/fails", "bad")
        assert float(said["error_rate"]) == shown["error_rate"] == pytest.approx(1.0)
        assert (shown["step_id"], shown["error_class"]) == ("bad", "FatalError")
        assert shown["execution_id"] in failed

        said, shown = found.alert(alertname="SinkErrorRateHigh", sink="duckdb:nowhere")
        assert float(said["error_rate"]) == shown["error_rate"] == pytest.approx(1.0)
        assert (shown["workflow_ref"], shown["step_id"]) == ("test/loses", "save")
        assert shown["execution_id"] in unsaved

        _, shown = found.alert(alertname="HighDLQGrowth", kind="python")
        assert (shown["workflow_ref"], shown["step_id"], shown["execution_id"] in failed) == ("test/fails", "bad", True)

        said, shown = found.alert(alertname="ExecutionSLAExceeded", step="wait", workflow="test/slow")
        assert (said["workflow_ref"], said["step_id"]) == ("test/slow", "wait")
        assert (shown["workflow_ref"], shown["step_id"], shown["execution_id"] in slow) == ("test/slow", "wait", True)

        hung = found.noetl.execute("test/long", {}).execution_id
        until(lambda: found.events(hung)[-1] == "task.started", "the beginning")
        os.kill(running.pid, signal.SIGSTOP)
        try:
            _, shown = found.alert(alertname="WorkerStalled")
            assert (shown["workflow_ref"], shown["step_id"], shown["execution_id"]) == ("test/long", "hang", hung)
        finally:
            os.kill(running.pid, signal.SIGCONT)
        assert not found.has_fired(workflow="test/one"), fine
