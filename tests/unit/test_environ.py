"""Secrets of a process: taken out of its environment and its command line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SHOW = """
import os, subprocess, sys
from noetl.environ import take_secrets, variables
take_secrets()
own = open("/proc/self/environ", "rb").read() + open("/proc/self/cmdline", "rb").read()
child = subprocess.run(["env"], capture_output=True, check=True).stdout
print(own.count(b"hush"), child.count(b"hush"), own.count(b"PLAIN=plain"), child.count(b"PLAIN=plain"))
print(*sorted(name for name, value in variables().items() if "hush" in value))
print(*sys.argv[1:])
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="the system shows no environment")
def test_secrets_are_in_no_environment_and_no_command_line() -> None:
    given = {
        "NOETL_TOKEN": "hush-1",
        "NOETL_CREDENTIAL_PG_MAIN": "postgresql://u:hush-2@h/d",
        "NOETL_ENCRYPTION_KEY": "hush-3",
        "NOETL_DB_URL": "postgresql://u:hush-4@h/d",
        "NOETL_OUTBOX_URL": "https://u:hush-5@h/d",
        "PLAIN": "plain",
    }
    words = ["--token", "hush-6", "--token=hush-7", "--store", "postgresql://u:hush-8@h/d", "rest"]
    ran = subprocess.run(
        [sys.executable, "-c", SHOW, *words], env={**os.environ, **given}, capture_output=True, text=True, check=True
    )
    counts, names, arguments = ran.stdout.splitlines()
    shown = SHOW.count("hush")  # the code is an argument as well
    assert counts == f"{shown} 0 {1 + SHOW.count('PLAIN=plain')} 1"
    assert names.split() == sorted(name for name in given if name != "PLAIN")
    assert arguments == " ".join(words)  # the process itself still has them
