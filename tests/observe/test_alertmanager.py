"""Debian's Alertmanager delivers real failures to a webhook."""

from __future__ import annotations

import json
import os
import shutil
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
from tests.server.serving import FAILS, ONE, process
from tests.unit.observe.test_exporter import free_port

_UNPACKED = Path(sys.prefix, "prometheus", "usr", "bin")
_NAME = "prometheus-alertmanager"
_INSTALLED = shutil.which(_NAME)
_IS_UNPACKED = (_UNPACKED / _NAME).exists() and sys.platform == "linux"
pytestmark = pytest.mark.skipif(
    not (_INSTALLED or _IS_UNPACKED), reason="no Alertmanager here: scripts/prometheus.sh unpacks it"
)
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
def worker(folder: Path, url: str) -> Iterator[None]:
    """Run a worker as a process."""
    environment = {**os.environ, "NOETL_HOME": str(folder / "worker")}
    with start_command("worker", "--server", url, folder=folder, environment=environment, text=True) as running:
        try:
            yield
        finally:
            running.kill()


def test_failures_of_a_step_reach_a_webhook_with_an_execution_to_look_at(tmp_path: Path) -> None:
    with (
        process(tmp_path, "serve", auth="auto") as (url, _server),
        worker(tmp_path, url),
        webhook() as (receiver, got),
        alertmanager(tmp_path, receiver) as manager,
    ):
        token = local_server(url).token
        assert token
        at_once = yaml.safe_load(rules())
        for rule in at_once["groups"][0]["rules"]:
            rule["for"] = "0s"  # the expression stays
        (tmp_path / "rules.yaml").write_text(yaml.safe_dump(at_once))
        more = {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s", "external_labels": {"noetl_url": url}},
            "rule_files": [str(tmp_path / "rules.yaml")],
            "alerting": {"alertmanagers": [{"static_configs": [{"targets": [manager]}]}]},
        }
        with SyncClient(url) as noetl, prometheus(tmp_path, url, token, more) as client:
            for playbook in (FAILS, ONE):
                noetl.register(playbook)

            def fail() -> None:
                assert noetl.execute("test/fails", {}, wait_ms=30_000).status == "failed"
                assert noetl.execute("test/one", {}, wait_ms=30_000).status == "completed"

            fail()
            until(lambda: bool(asked(client, 'noetl_step_runs_total{step="bad",ok="false"}')), "the first scrape")
            fail()
            failed = {"alertname": "StepFailureRateHigh", "step": "bad", "workflow": "test/fails"}
            until(lambda: any(failed.items() <= one["labels"].items() for one in got), "the alert")
            alert = next(one for one in got if failed.items() <= one["labels"].items())
            said = alert["annotations"]
            assert (alert["status"], said["workflow_ref"], said["step_id"]) == ("firing", "test/fails", "bad")
            assert float(said["error_rate"]) == pytest.approx(1.0)
            assert said["link"].startswith(f"{url}/api/alerts/StepFailureRateHigh?")
            shown = httpx.get(said["link"], headers={"Authorization": f"Bearer {token}"}, timeout=30).json()
            assert shown.keys() == FIELDS
            assert (shown["workflow_ref"], shown["step_id"], shown["error_class"]) == (
                "test/fails",
                "bad",
                "FatalError",
            )
            assert shown["error_rate"] == pytest.approx(1.0)
            row = httpx.get(url + shown["link"], headers={"Authorization": f"Bearer {token}"}, timeout=30).json()
            assert (row["status"], row["path"]) == ("failed", "test/fails")
            assert shown["link"].endswith(f"/api/executions/{shown['execution_id']}")
            assert not [one for one in got if one["labels"].get("workflow") == "test/one"]
