"""A server with every export: what runs arrives everywhere, and no secret does."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import msgspec
import pytest

from noetl.model.errors import InvalidInput
from noetl.observe.export import targets
from noetl.settings import (
    EXPORT_CLICKHOUSE_URL,
    EXPORT_OTLP_HEADERS,
    EXPORT_OTLP_URL,
    ExportSettings,
    settings,
)
from tests.receiver import receiver
from tests.server.serving import in_process, playbook

pytestmark = pytest.mark.asyncio
CANARY = "canary-8f31c2d04b7e95a6"
LEAKS = playbook(
    "  - step: one\n    tool:\n      kind: python\n      code: |\n"
    "        print('Bearer ' + password, 'https://x/?token=' + password)\n"
    "        raise ValueError('the password=' + password + ' at postgres://me:' + password + '@db/x')\n"
    "      input: {password: '{{ workload.api_token }}', public: hello}\n",
    "leaks",
    workload={"api_token": CANARY, "nested": {"client_secret": CANARY, "shown": "plain-4711"}},
)


async def test_what_runs_arrives_everywhere_without_its_secrets(tmp_path: Path) -> None:
    async with receiver() as collector, receiver() as lineage:
        export = ExportSettings(
            parquet_folder=str(tmp_path / "log"), otlp_url=collector.url, openlineage_url=lineage.url
        )
        async with in_process(tmp_path, export=export) as served, served.embedded.run_worker(""):
            execution = await served.start(LEAKS)
            await served.until(execution, "failed")
            logged = await served.services.store.read(execution)
            async with asyncio.timeout(60):
                while sum(
                    len(one.body["resourceLogs"][0]["scopeLogs"][0]["logRecords"]) for one in collector.posted
                ) < len(logged):
                    await asyncio.sleep(0.05)
                while len(lineage.posted) < 4 or not list((tmp_path / "log").rglob("*.parquet")):
                    await asyncio.sleep(0.05)
            page = (await served.http.get("/metrics")).text
        files = list((tmp_path / "log").rglob("*.parquet"))
    assert [one.body["eventType"] for one in lineage.posted] == ["START", "START", "FAIL", "FAIL"]
    texts = [msgspec.json.encode(one.body).decode() for one in (*collector.posted, *lineage.posted)]
    from pyarrow import parquet

    assert files
    texts += [str(parquet.read_table(one).to_pylist()) for one in files]
    assert any("plain-4711" in text for text in texts)
    leaks = [text[max(0, text.index(CANARY) - 200) :][:300] for text in (*texts, page) if CANARY in text]
    assert not leaks
    for target in ("otlp", "openlineage", "parquet"):
        assert f'noetl_export_lag_seconds{{target="{target}"}}' in page


async def test_a_target_that_never_answers_delays_no_execution(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as opened:  # it connects, and nothing answers
        url = f"http://127.0.0.1:{opened.getsockname()[1]}"
        export = ExportSettings(clickhouse_url=url, otlp_url=url, openlineage_url="http://127.0.0.1:1")
        async with in_process(tmp_path, export=export) as served, served.embedded.run_worker(""):
            for _ in range(10):
                await served.until(await served.start(LEAKS), "failed")
            page = ""
            async with asyncio.timeout(60):
                while 'noetl_export_failures_total{target="openlineage"}' not in page:
                    await asyncio.sleep(0.05)
                    page = (await served.http.get("/metrics")).text
            assert 'noetl_export_events_total{target="clickhouse"}' not in page


async def test_without_pyarrow_the_error_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets, "find_spec", lambda _: None)
    with pytest.raises(InvalidInput, match="needs pyarrow"):
        list(targets.export_targets(ExportSettings(parquet_folder="x")))
    assert list(targets.export_targets(ExportSettings())) == []


async def test_settings_name_the_targets() -> None:
    given = {EXPORT_OTLP_URL: "http://h:4318", EXPORT_OTLP_HEADERS: "Authorization=Bearer a=b, X-One=2"}
    found = settings(given, Path()).export
    assert found.otlp_headers == {"Authorization": "Bearer a=b", "X-One": "2"}
    assert found.clickhouse_table == "observability.noetl_events"
    for name, value in ((EXPORT_CLICKHOUSE_URL, "h:8123"), (EXPORT_OTLP_HEADERS, "Bearer canary")):
        with pytest.raises(InvalidInput) as refused:
            settings({name: value}, Path())
        assert name in str(refused.value)
        assert "canary" not in str(refused.value)
