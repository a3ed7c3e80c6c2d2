"""`noetl webhook` on a server of its own: made, tested, paused, deleted."""

from __future__ import annotations

import json

from tests.acceptance.running import Folder
from tests.server.serving import process


def test_a_webhook_from_its_creation_to_its_end(folder: Folder) -> None:
    assert "Webhooks are received by a server" in folder.call("webhook", "list").err
    file = folder.playbook("- step: say\n  tool: { kind: noop, result: '{{ workload.who }}' }", workload={"who": ""})
    (folder.path / "body.json").write_text('{"sender": {"login": "ada"}}')
    with process(folder.path, "up") as (url, _):
        where = ("--server", url)
        assert folder.call("register", file, *where).code == 0
        create = ("webhook", "create", "push", "test/play", "--auth", "github", *where)
        assert "needs --credential" in folder.call(*create).err
        assert "There is no credential `hook`" in folder.call(*create, "--credential", "hook").err
        (folder.path / "secret.json").write_text(json.dumps({"value": "0123456789abcdef0123"}))
        put = ("credential", "put", "hook", "--type", "secret", "--data", "@secret.json", *where)
        assert folder.call(*put).code == 0
        mapped = ("--credential", "hook", "--wait-up-to", "30s", "--payload", '{"who": "{{ body.sender.login }}"}')
        made = folder.call(*create, *mapped)
        assert made.code == 0, made.err
        assert "created webhook push: POST /api/hooks/push starts test/play" in made.err
        test = ("webhook", "test", "push", "--body", "body.json", "--header", "X-GitHub-Delivery=1", *where)
        first = json.loads(folder.call(*test, "--json").out)
        assert (first["status"], first["result"], first["repeated"]) == ("completed", "ada", False)
        assert f"{first['execution_id']} completed (started by an earlier delivery)" in folder.call(*test).out
        assert "paused webhook push" in folder.call("webhook", "pause", "push", *where).err
        assert "This webhook is paused." in folder.call(*test).err
        assert "github   paused   test/play" in folder.call("webhook", "list", *where).out
        assert folder.call("webhook", "resume", "push", *where).code == 0
        assert "github in the header x-hub-signature-256" in folder.call("webhook", "show", "push", *where).out
        assert folder.call("webhook", "delete", "push", *where).code == 0
        assert "no webhooks" in folder.call("webhook", "list", *where).err
        for arguments, text in ((("--body", "none.json"), "none.json"), (("--header", "x"), "NAME=VALUE")):
            ran = folder.call("webhook", "test", "push", *arguments, *where)
            assert ran.code != 0
            assert text in ran.err
            assert "Traceback" not in ran.err
