"""`noetl notification` on a server of its own: made, tested, shown, deleted."""

from __future__ import annotations

import json

from tests.acceptance.running import Folder, until
from tests.server.serving import process
from tests.tools.web import Web


def test_a_notification_from_its_creation_to_its_end(folder: Folder, web: Web) -> None:
    assert "Notifications are sent by a server" in folder.call("notification", "list").err
    with process(folder.path, "up") as (url, _):
        where = ("--server", url)
        assert "no notifications" in folder.call("notification", "list", *where).err
        create = ("notification", "create", "ops", "test/*", *where)
        refused = folder.call(*create)
        assert refused.code != 0
        assert "needs a credential" in refused.err
        assert "Traceback" not in refused.err
        late = ("--on", "failed", "--on", "sla", "--sla", "2h", "--url", f"{web.url}/json")
        made = folder.call(*create, *late)
        assert made.code == 0, made.err
        assert "created notification ops: failed, sla (after 2h) of test/*" in made.err
        assert "webhook  failed, sla (after 2h) of test/*" in folder.call("notification", "list", *where).out
        sent = folder.call("notification", "test", "ops", "--json", *where)
        assert json.loads(sent.out)["number"] == 1
        until(lambda: bool(web.asked), "the test message")
        assert json.loads(web.asked[0].body)["event"] == "test"
        assert f"webhook to {web.url}/json" in folder.call("notification", "show", "ops", *where).out
        assert folder.call("notification", "delete", "ops", *where).code == 0
        assert "No notification ops" in folder.call("notification", "show", "ops", *where).err
