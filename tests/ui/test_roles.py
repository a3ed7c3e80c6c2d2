"""Four roles × every action button: enabled as the OpenAPI document's roles say."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from playwright.sync_api import Page, expect

from noetl.client.local_server import local_server
from tests.ui.browsing import UNTIL, Pages, Workspace, needs_a_browser
from tests.ui.survey import settled

pytestmark = [needs_a_browser, pytest.mark.xdist_group("screen")]

ROLES = ("viewer", "operator", "editor", "admin")
ONE = "/api/executions/{execution_id}"
# Each screen with its action buttons, and the operation that each of them uses.
SCREENS: Mapping[str, Mapping[str, str]] = {
    "/": {"Answer…": f"POST {ONE}/signal", "Run…": "POST /api/execute"},
    "/playbooks": {"Run…": "POST /api/execute"},
    "/playbooks/orders/nightly": {"Run…": "POST /api/execute"},
    "/edit/orders/nightly": {"Run…": "POST /api/try", "Register…": "POST /api/catalog"},
    "/executions/{waiting}": {
        "Answer…": f"POST {ONE}/signal", "Pause": f"POST {ONE}/pause", "Fork…": f"POST {ONE}/fork", "Cancel…": f"POST {ONE}/cancel",
        "Change ctx…": f"PATCH {ONE}/ctx",
        "Complete a step…": "POST /api/admin/executions/{execution_id}/steps/{step}/force-complete",
    },
    "/executions/{failed}": {
        "Retry…": f"POST {ONE}/retry", "Retry from here…": f"POST {ONE}/retry", "Fork…": f"POST {ONE}/fork", "Delete…": f"DELETE {ONE}",
    },
    "/letters/{group}?letter={letter}": {
        "Replay 3…": "POST /api/dlq/replay", "Discard 3…": "POST /api/dlq/discard",
        "Replay…": "POST /api/dlq/{message_id}/replay", "Discard…": "POST /api/dlq/{message_id}/discard",
    },
    "/workers?id={worker}": {"Drain…": "POST /api/workers/{worker_id}/drain", "Remove…": "DELETE /api/workers/{worker_id}"},
    "/schedules?id=hourly": {
        "New schedule…": "POST /api/schedules", "Pause…": "POST /api/schedules/{schedule_id}/pause", "Run now…": "POST /api/execute",
        "Backfill…": "POST /api/schedules/{schedule_id}/backfill", "Delete…": "DELETE /api/schedules/{schedule_id}",
    },
    "/schedules?tab=triggers&id=alarm": {"Pause…": "POST /api/triggers/{trigger_id}/pause", "Delete…": "DELETE /api/triggers/{trigger_id}"},
    "/schedules?tab=notifications&id=team": {
        "Pause…": "POST /api/notifications/{notification_id}/pause", "Delete…": "DELETE /api/notifications/{notification_id}",
    },
    "/outbox?id={message}": {"Retry…": "POST /api/outbox/{number}/retry", "Discard…": "POST /api/outbox/{number}/discard"},
    "/credentials?id=shop": {
        "New credential…": "PUT /api/credentials/{name}", "Test…": "POST /api/credentials/{name}/test",
        "Replace…": "PUT /api/credentials/{name}", "Delete…": "DELETE /api/credentials/{name}",
    },
    "/tokens?id={token}": {"New token…": "POST /api/tokens", "Revoke…": "DELETE /api/tokens/{token_id}"},
    "/people?id=ada": {
        "New person…": "POST /api/users", "Roles…": "PATCH /api/users/{name}", "Disable…": "PATCH /api/users/{name}",
        "Delete…": "DELETE /api/users/{name}",
    },
}  # fmt: skip
# What opens a screen; below this role the screen says which one it needs.
READS = {"/credentials": "/api/credentials", "/tokens": "/api/tokens", "/people": "/api/users"}


# The visible buttons, when each of some texts is that of one, and the editor has checked its text.
# Menus are opened for it: their items count, and say why they cannot be chosen beside their words.
BUTTONS = f"""async names => {{ {UNTIL}
    const found = () => [...document.querySelectorAll("button, [role=button]")].filter(one => one.checkVisibility()).map(one => ({{
        text: (one.role === "menuitem" ? one.firstElementChild : one).innerText.trim(), is_enabled: !one.disabled && one.ariaDisabled !== "true",
        title: one.title, is_inside: !!one.closest("#content"),
    }}));
    for (const one of document.querySelectorAll("[aria-haspopup=menu][aria-expanded=false]")) one.click();
    await until(() => {{
        const now = found(), texts = now.map(one => one.text);
        return names.every(name => texts.includes(name)) && !now.some(one => one.title === "being checked");
    }});
    return found();
}}"""


@dataclass(frozen=True)
class Button:
    """A button; `is_inside` a screen, not in the frame around it."""

    text: str
    is_enabled: bool
    title: str
    is_inside: bool


class Api:
    """The API with the server's own token."""

    def __init__(self, url: str) -> None:
        self._url, self._headers = url, {"Authorization": f"Bearer {local_server(url).token}"}

    def get(self, path: str) -> Any:
        return httpx.get(self._url + path, headers=self._headers, timeout=60).raise_for_status().json()


@pytest.fixture(scope="module")
def api(seeded: Workspace) -> Api:
    return Api(seeded.url)


@pytest.fixture(scope="module")
def ids(seeded: Workspace, api: Api) -> dict[str, str]:
    """Make one row for the panel of every screen, and return the ids of all."""
    client = seeded.client
    client.put_credential("shop", {"token": "kept"}, "bearer")
    client.create_schedule("hourly", "orders/nightly", every="1h")
    client.create_trigger("alarm", "orders/nightly", "nothing/*")
    client.create_notification("team", "orders/broken", ["failed"], "webhook", url="http://127.0.0.1:9/alarm")
    client.create_user("ada", grants=[{"role": "viewer"}])
    seeded.token("viewer")
    seeded.reaches(seeded.start(seeded.copy("orders/load", "roles/load")), "partial")
    seeded.reaches(seeded.start("orders/broken"), "failed")
    until = time.monotonic() + 60
    while not (messages := api.get("/api/outbox")["messages"]):
        assert time.monotonic() < until, "no message in the outbox"
        time.sleep(0.05)
    (group,) = (one for one in api.get("/api/dlq/groups")["groups"] if one["path"] == "roles/load")
    letters = api.get(f"/api/dlq?group={group['fingerprint']}")
    return {
        **seeded.ids,
        "group": group["fingerprint"],
        "letter": letters["letters"][0]["message_id"],
        "worker": api.get("/api/workers")["workers"][0]["worker_id"],
        "message": str(messages[0]["number"]),
        "token": api.get("/api/tokens")["tokens"][0]["token_id"],
    }


def role_of(document: Mapping[str, Any], operation: str) -> str:
    method, _, path = operation.partition(" ")
    return str(document["paths"][path][method.lower()]["x-noetl-role"])


def buttons(page: Page, names: Iterable[str]) -> list[Button]:
    """Wait until a button has each of these texts, and return every visible one."""
    return [Button(**one) for one in page.evaluate(BUTTONS, [*names])]


@pytest.mark.parametrize("role", ROLES)
def test_a_button_is_enabled_as_its_operation_says(pages: Pages, api: Api, ids: dict[str, str], role: str) -> None:
    document = api.get("/api/openapi.json")
    wrong: dict[str, Any] = {}
    with pages.visiting(role) as visitor:
        visitor.go("/")
        for path, named in SCREENS.items():
            reads = next((one for place, one in READS.items() if path.startswith(place)), None)
            page = visitor.show(path.format(**ids))
            settled(page)
            if reads and ROLES.index(role) < ROLES.index(needed := role_of(document, f"GET {reads}")):
                expect(page.get_by_role("heading", name=f"Needs {needed}")).to_be_visible()
                continue
            for one in buttons(page, named):
                if one.text in named:
                    needed = role_of(document, named[one.text])
                    may = ROLES.index(role) >= ROLES.index(needed)
                    if one.is_enabled != may or (not may and one.title != f"needs {needed}"):
                        wrong[f"{path} {one.text}"] = (one, needed)
                elif one.text.endswith("…") and one.is_inside:
                    wrong[f"{path} {one.text}"] = (one, "unknown")
    assert wrong == {}


def test_only_an_operator_marks_executions_and_acts_on_many(pages: Pages, api: Api) -> None:
    document = api.get("/api/openapi.json")
    assert (
        role_of(document, "POST /api/executions/cancel")
        == role_of(document, "POST /api/executions/retry")
        == "operator"
    )
    for role in ROLES:
        with pages.visiting(role) as visitor:
            page = visitor.go("/executions")
            expect(page.get_by_role("row").nth(1)).to_be_visible()
            boxes = page.get_by_role("row").get_by_role("checkbox")
            if role == "viewer":
                expect(boxes).to_have_count(0)
                continue
            boxes.nth(1).check()
            expect(page.get_by_role("button", name="Cancel…")).to_be_visible()
            expect(page.get_by_role("button", name="Retry from the failed step…")).to_be_visible()
