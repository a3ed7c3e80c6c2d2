"""Triggers that cannot be read: shown as broken, deleted, and no reason for a 500."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from msgspec import json

from noetl.ports.triggers import StoredTrigger
from noetl.server.api.catalog import catalog
from noetl.server.http.playbook_check import Checked
from tests.server.serving import in_process, playbook

pytestmark = pytest.mark.asyncio
BROKEN: dict[str, tuple[str, dict[str, Any], str]] = {  # word → kind, what is stored, field of the row with the reason
    "notification": ("notification", {"on": ["failed"], "channel": "email", "credential": "c", "to": [5]}, "problem"),
    "trigger": ("ended", {"path": 5}, "problem"),
    "webhook": ("webhook", {"auth": "secret", "credential": 5}, "problem"),
    "subscription": ("subscription", {"source": "folder", "folder": 5}, "error"),
}


@pytest.mark.parametrize("word", list(BROKEN))
async def test_what_cannot_be_read_is_shown_with_the_reason(tmp_path: Path, word: str) -> None:
    kind, spec, field = BROKEN[word]
    async with in_process(tmp_path) as served:
        await served.services.triggers.add(StoredTrigger(kind, "b", "test/x", spec))
        [row] = (await served.json("GET", f"/api/{word}s"))[f"{word}s"]
        assert "cannot be read: Expected `str`, got `int`" in row[field]
        assert await served.json("GET", f"/api/{word}s/b") == row
        assert (await served.json("POST", f"/api/{word}s/b/pause"))["paused"] is True
        if word != "trigger":
            tried = await served.http.post(f"/api/{word}s/b/test", json={})
            assert tried.status_code < 500
            assert "cannot be read" in tried.text
        assert await served.json("DELETE", f"/api/{word}s/b") == {"removed": 1}


async def test_a_delivery_to_a_webhook_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served:
        await served.services.triggers.add(StoredTrigger("webhook", "b", "test/x", BROKEN["webhook"][1]))
        answer = await served.http.post("/api/hooks/b", content=b"{}", headers={"content-type": "application/json"})
        assert (answer.status_code, answer.json()["detail"]) == (503, "This webhook cannot check deliveries now.")


@pytest.mark.parametrize(
    "more",
    [
        {"triggers": [{"schedule": "s", "cron": 5}]},
        {"triggers": [{"schedule": "s", "cron": "99 * * * *"}]},
        {"triggers": [{"schedule": "s", "every": 5.5}, {"ended": "e", "path": "a"}]},
        {"triggers": [{"webhook": "w", "auth": "secret", "credential": 5}]},
        {"notifications": [{"name": "n", "on": ["failed"], "channel": "email", "to": [5]}]},
    ],
)
async def test_a_version_whose_triggers_cannot_be_made_is_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    """The checker refuses these; here it passes them, as another version could."""
    content = playbook("  - {step: one, tool: {kind: noop}}\n", "broken", **more).encode()
    tree = json.encode({"triggers": [], **more})
    passed = Checked("test/broken", content, tree, sha256(content).hexdigest(), [])

    async def check(*_: Any, **__: Any) -> Checked:
        return passed

    async with in_process(tmp_path) as served:
        monkeypatch.setattr(catalog, "check_playbook", check)
        answer = await served.json("POST", "/api/catalog", {"content": "x"}, 422)
        assert "cannot be made" in answer["detail"]
        assert (await served.json("GET", "/api/catalog"))["playbooks"] == []
        # A version that was stored before such checks becomes the latest again.
        await served.services.store.register("test/broken", content, tree, passed.playbook, 1)
        good = playbook("  - {step: one, tool: {kind: noop}}\n", "broken")
        monkeypatch.undo()
        await served.register(good)
        await served.json("DELETE", "/api/catalog?path=test/broken&version=2")
        assert await served.services.schedules.schedules(owner="test/broken") == []
