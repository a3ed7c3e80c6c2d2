"""`noetl exec --follow`: Ctrl-C ends the watching, not the execution."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from tests.acceptance.run import noetl
from tests.acceptance.running import Folder
from tests.server.serving import process

# A background job of a shell ignores Ctrl-C, and so would what it starts.
MAIN = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from noetl.cli import main; main()"


def test_ctrl_c_tells_that_the_execution_goes_on(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    file = folder.playbook("- { step: ask, tool: { kind: wait, signal: go } }")
    with process(tmp_path, "up", auth="auto") as (url, _):
        assert noetl("register", file, "--server", url, cwd=tmp_path).code == 0
        words = [sys.executable, "-c", MAIN, "exec", "test/play", "--follow", "--server", url]
        with subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as following:
            assert following.stderr is not None
            said = ""
            while "waits for the signal go" not in said and following.poll() is None:
                said += following.stderr.readline()
            following.send_signal(signal.SIGINT)
            try:
                said += following.communicate(timeout=60)[1]
            finally:
                following.kill()
        assert "Stopped watching." in said
        assert "goes on: `noetl events " in said
        assert "Traceback" not in said
        assert '"status":"waiting"' in noetl("status", "last", "--json", "--server", url, cwd=tmp_path).out
