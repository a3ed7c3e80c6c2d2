"""The real worker of a server that requires tokens: confined, without secrets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from noetl.worker.processes import network, sandbox
from tests.acceptance.run import noetl
from tests.server.serving import process

PLAY = """
apiVersion: noetl.io/v10
kind: Playbook
metadata: { name: look, path: test/look }
workflow:
  - step: look
    tool:
      kind: python
      args: { folder: "{{ workload.folder }}" }
      code: |
        import os, socket
        def tried(act):
            try:
                return act()
            except OSError as error:
                return type(error).__name__
        result = {
            "sealed": tried(lambda: open(folder + "/key").read()),
            "store": tried(lambda: open(folder + "/noetl.db", "rb").read(1)),
            "write": tried(lambda: open(folder + "/new", "w").write("x")),
            "socket": tried(lambda: socket.socket().close()),
            "parent": tried(lambda: open(f"/proc/{os.getppid()}/environ").read()),
        }
workload: { folder: "" }
"""


@pytest.mark.skipif(sandbox.strongest() == "none", reason="this machine has no sandbox")
@pytest.mark.skipif(network.problem() is not None, reason=str(network.problem()))
def test_tasks_of_several_users_are_confined_by_default(tmp_path: Path) -> None:
    store = str(tmp_path / "noetl.db")
    made = noetl("token", "create", "--role", "admin", "--name", "me", "--store", store, cwd=tmp_path)
    token = made.out.strip()
    (tmp_path / "look.yaml").write_text(PLAY)
    own = {"NOETL_CREDENTIAL_CRM": "hush-hush", "NOETL_TOKEN": token}
    with process(tmp_path, "up", "--auth", "token", "--store", store, environment=own) as (url, server):
        shown = Path(f"/proc/{server.pid}/environ").read_bytes() + Path(f"/proc/{server.pid}/cmdline").read_bytes()
        assert b"hush-hush" not in shown
        assert token.encode() not in shown
        put = noetl(
            "credential", "put", "crm", "--data", '{"token": "t"}', "--server", url, cwd=tmp_path, NOETL_TOKEN=token
        )
        assert (put.code, (tmp_path / "key").exists()) == (0, True), put.err
        assert noetl("register", "look.yaml", "--server", url, cwd=tmp_path, NOETL_TOKEN=token).code == 0
        words = ("exec", "test/look", "--server", url, "--set", f"folder={tmp_path}", "--wait", "--json")
        ran = noetl(*words, cwd=tmp_path, NOETL_TOKEN=token)
        assert ran.code == 0, ran.out
        found = json.loads(ran.out.splitlines()[-1])["result"]
    assert found["sealed"] == found["store"] == found["write"] == found["socket"] == "PermissionError"
    assert found["parent"] in ("PermissionError", "FileNotFoundError")
    assert not (tmp_path / "new").exists()
