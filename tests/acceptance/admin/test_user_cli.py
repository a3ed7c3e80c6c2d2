"""`noetl user` and `noetl group` on a local store and on a server."""

from __future__ import annotations

import json

from tests.acceptance.running import Folder
from tests.server.serving import process

TWO_ROLES = ("--role", "viewer", "--namespace", "a/", "--role", "editor", "--namespace", "c/")


def test_users_and_groups_of_a_local_store(folder: Folder) -> None:
    (folder.path / "secret").write_text("correct horse battery\n", encoding="utf-8")
    unknown = folder.call("user", "create", "ada", "--group", "ops", "--no-password")
    assert "There is no group ops. Create it with `noetl group set ops`." in unknown.err
    assert folder.call("group", "set", "ops").code == 0
    made = folder.call(
        "user", "create", "ada", "--role", "editor", "--namespace", "team-a", "--group", "ops", "--password", "@secret"
    )
    assert (made.code, made.err) == (0, "created user ada\n")
    assert folder.call("group", "set", "ops", "--role", "viewer").code == 0
    assert "editor in team-a/  groups ops" in folder.call("user", "list").out
    assert folder.call("group", "list").out.split() == ["ops", "viewer", "members:", "ada"]
    assert folder.call("user", "passwd", "ada", "--password", "@secret").code == 0
    assert folder.call("user", "disable", "ada").code == 0
    assert json.loads(folder.call("user", "list", "--json").out)["disabled"] is True
    for arguments, text in (
        (("user", "create", "ada", "--no-password"), "There is a user ada"),
        (("user", "create", "bob", "--password", "@none"), "none"),
        (("user", "create", "bob"), "--password @FILE"),
        (("user", "create", "b b", "--no-password"), "is no name"),
        (("user", "create", "..", "--no-password"), "but not `.` or `..`"),
        (("user", "create", "bob", "--no-password", "--group", "."), "is no name"),
        (("group", "set", ".", "--role", "viewer"), "is no name"),
        (("user", "create", "bob", "--no-password", "--role", "worker"), "Unknown role"),
        (("user", "create", "bob", "--no-password", "--namespace", "a"), "--role"),
        (("user", "create", "bob", "--no-password", *TWO_ROLES), "through groups"),
        (("user", "set", "ada", *TWO_ROLES), "Several roles given: --role viewer --role editor."),
        (("group", "set", "ops", *TWO_ROLES), "through groups"),
        (("token", "create", *TWO_ROLES), "A token has one role: create one token for each."),
        (
            ("user", "set", "ada", "--group", "opps"),
            "no group opps. Create it with `noetl group set opps`. The groups are ops.",
        ),
        (("user", "enable", "none"), "No user none"),
        (("user", "delete", "none"), "No user none"),
        (("group", "delete", "none"), "No group none"),
    ):
        ran = folder.call(*arguments)
        assert ran.code != 0
        assert text in ran.err
        assert "Traceback" not in ran.err
    assert folder.call("user", "delete", "ada").code == 0
    assert folder.call("group", "delete", "ops").code == 0
    assert folder.call("user", "list").err == "no users\n"
    assert folder.call("audit", "verify").out.startswith("7 entries intact")


def test_users_and_groups_of_a_server(folder: Folder) -> None:
    with process(folder.path, "serve") as (url, _):
        where = ("--server", url)
        assert folder.call("user", "create", "bob", "--no-password", *where).code == 0
        assert folder.call("group", "set", "ops", *where).code == 0
        assert folder.call("user", "set", "bob", "--role", "operator", "--group", "ops", *where).code == 0
        assert folder.call("group", "set", "ops", "--role", "viewer", "--namespace", "x", *where).code == 0
        assert "operator" in folder.call("user", "list", *where).out
        assert "viewer in x/  members: bob" in folder.call("group", "list", *where).out
        assert folder.call("user", "disable", "bob", *where).code == 0
        assert folder.call("user", "delete", "bob", *where).code == 0
        assert folder.call("group", "delete", "ops", *where).code == 0
