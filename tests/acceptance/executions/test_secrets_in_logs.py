"""No secret in what a process prints: its own lines, libraries, tasks."""

from __future__ import annotations

import json
from contextlib import closing

import pytest

from noetl.masking.readers import ReaderMask
from noetl.masking.values import MASK, KnownValues, in_process
from tests.acceptance.running import Folder
from tests.tools.web import Web

TOKEN = "s3cret-t0ken-va1ue"  # no piece of it is a word that a message may hold
HOOK_PART = "x8Kq2LmPz71RtYw3"
WORKFLOW = f"""
- step: start
  tool:
    - call:
        kind: http
        url: "{{{{ workload.url }}}}/status/404?access_token={TOKEN}"
        auth: api
        spec: {{ policy: {{ rules: [ {{ else: {{ then: {{ do: continue }} }} }} ] }} }}
    - hook:
        kind: http
        method: POST
        url: "{{{{ keychain.hook.url }}}}"
        spec: {{ policy: {{ rules: [ {{ else: {{ then: {{ do: continue }} }} }} ] }} }}
    - long:
        kind: shell
        command: |
          printf '%016380d%s\\n' 0 "$T"
          printf '%0195d%s%0400d\\n' 0 "$T" 0 >&2
          exit 1
        env: {{ T: "{{{{ keychain.api.token }}}}" }}
        spec: {{ policy: {{ rules: [ {{ else: {{ then: {{ do: continue }} }} }} ] }} }}
    - raises:
        kind: python
        input: {{ t: "{{{{ keychain.api.token }}}}" }}
        code: |
          print("y" * 16380 + t)
          raise ValueError("x" * 19995 + t)
"""


@pytest.mark.parametrize("level", ["debug", "info"])
def test_no_secret_is_printed_or_kept_at_any_level(folder: Folder, level: str) -> None:
    file = folder.playbook(WORKFLOW, keychain=[{"name": "api"}, {"name": "hook"}], workload={"url": ""})
    with closing(Web()) as web:
        given = {
            "NOETL_LOG_LEVEL": level,
            "NOETL_CREDENTIAL_API": json.dumps({"token": TOKEN}),
            "NOETL_CREDENTIAL_HOOK": json.dumps({"url": f"{web.url}/hooks/{HOOK_PART}"}),
        }
        ran = folder.call("run", file, "--set", f"url={web.url}", **given)
        assert [one.path for one in web.asked][-1].endswith(HOOK_PART)
    assert ran.code == 1
    shown = [ran.err, ran.out, *(folder.call(what, "last", "--json").out for what in ("events", "logs", "explain"))]
    pieces = [TOKEN[at : at + 5] for at in range(len(TOKEN) - 4)] + [HOOK_PART]
    assert [(piece, text) for piece in pieces for text in shown if piece in text] == []
    assert MASK in shown[2]


def test_log_lines_of_the_process_know_the_secrets_of_its_workers() -> None:
    known, log_line = KnownValues(), ReaderMask(["iban"]).line
    with in_process(known):
        known.learn("api", {"token": TOKEN})
        assert log_line(f"the kind http raised: {TOKEN}") == f"the kind http raised: {MASK}"
    assert log_line("GET http://h/?api_key=abcdefgh") == f"GET http://h/?api_key={MASK}"
    assert log_line("customer_iban=DE0212 basic_auth: a") == f"customer_iban={MASK} basic_auth: {MASK}"
    assert log_line(TOKEN) == TOKEN
