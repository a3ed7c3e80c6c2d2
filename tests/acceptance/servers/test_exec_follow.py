"""`noetl exec --follow`: Ctrl-C ends the watching, not the execution."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.acceptance.run import noetl
from tests.acceptance.running import Folder
from tests.server.serving import process


def test_ctrl_c_tells_that_the_execution_goes_on(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    file = folder.playbook("- { step: ask, tool: { kind: wait, signal: go } }")
    with process(tmp_path, "up") as (url, _):
        assert noetl("register", file, "--server", url, cwd=tmp_path).code == 0
        words = [sys.executable, "-m", "noetl", "exec", "test/play", "--follow", "--server", url]
        with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as following:
            assert following.stderr is not None
            said = ""
            while "waits for the signal go" not in said:
                said += following.stderr.readline()
            following.send_signal(signal.SIGINT)
            said += following.stderr.read()
        assert "Stopped watching." in said
        assert "goes on: `noetl events " in said
        assert "Traceback" not in said
        assert '"status":"waiting"' in noetl("status", "last", "--json", "--server", url, cwd=tmp_path).out
