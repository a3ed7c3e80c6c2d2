"""Precedence of settings: playbook over environment over configuration file."""

from __future__ import annotations

import json
import signal
from hashlib import sha256
from pathlib import Path

import httpx
import pytest

from tests.acceptance.running import Folder, summary
from tests.server.serving import PATIENCE_S, playbook, process

FAILS = """
- {step: a, tool: {kind: python, code: "raise RetryableError('no')"}, next: [{step: b}]}
- {step: b, tool: {kind: noop, result: 1}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    (tmp_path / ".noetl").mkdir()
    return Folder(tmp_path)


def attempts(folder: Folder) -> int:
    found = folder.events("last", "--type", "task.attempt.failed")
    return len(found) or len(folder.events("last", "--type", "task.failed"))


def test_file_then_environment_then_playbook(folder: Folder) -> None:
    (folder.path / ".noetl" / "noetl.yaml").write_text(
        "retries: {plugin: {max_attempts: 3, base_ms: 0}}\npolicies: {on_step_fail: continue}\n"
    )
    file = folder.playbook(FAILS)
    ran = folder.run(file)
    assert (ran.code, ran.data["steps"]["b"]["done"], attempts(folder)) == (1, 1, 3)
    ran = summary(folder.call("run", file, "--json", NOETL_RETRIES_PLUGIN_MAX_ATTEMPTS="2"))
    assert (ran.code, attempts(folder)) == (1, 2)
    spec = {"retries": {"plugin": {"max_attempts": 1}}, "on_step_fail": "halt"}
    ran = summary(folder.call("run", folder.playbook(FAILS, executor={"spec": spec}), "--json"))
    assert (ran.code, "b" in ran.data["steps"], attempts(folder)) == (1, False, 1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "retries: {plugin: {max_atempts: 3}}\n",
            "noetl.yaml:1:33: unknown setting `retries.plugin.max_atempts`. Did you mean",
        ),
        ("policies: {on_step_fail: explode}\n", "NOETL_POLICIES_ON_STEP_FAIL must be one of halt, continue"),
        ("capacity: [\n", "noetl.yaml:"),
        ("capacity: none\n", "NOETL_CAPACITY must be an integer"),
    ],
)
def test_a_file_that_cannot_be_used_is_told(folder: Folder, text: str, words: str) -> None:
    (folder.path / ".noetl" / "noetl.yaml").write_text(text)
    ran = folder.call("run", folder.playbook(FAILS))
    assert (ran.code, ran.out) == (2, "")
    assert words in ran.err
    assert "Traceback" not in ran.err


def test_a_named_file_that_is_not_there_is_told(folder: Folder) -> None:
    ran = folder.call("runs", NOETL_CONFIG="gone.yaml")
    assert (ran.code, ran.out) == (2, "")
    assert "Cannot read the configuration file gone.yaml: No such file or directory" in ran.err


def test_explain_knows_the_settings_too(folder: Folder) -> None:
    (folder.path / ".noetl" / "noetl.yaml").write_text("orchestrator: {max_parallel: 1}\n")
    workflow = "- {step: s, tool: {kind: noop}, next: [a, b]}\n- {step: a, tool: {kind: wait, signal: go}}\n- {step: b, tool: {kind: noop}}"
    assert folder.call("run", folder.playbook(workflow)).code == 4
    assert "`max_parallel` allows 1 step-runs at once" in folder.call("explain", "last").out


WHOLE = Path(__file__).parents[3] / "deploy" / "noetl.yaml"
KEEPS_KEYS = playbook("  - step: s\n    tool: {kind: noop, result: {key: opens, n: 1}}\n", "keys")
WRONG = """\
retires: {plugin: {base_ms: 1}}
capacity: none
metrics: {prot: 9, port: 99999}
policies: {on_step_fail: explode}
orchestrator: {route_after_all_sinks: false, render_args_server_side: "no"}
tracing: {sample_rate: 1.5, endpoint: jaeger, exporter: smoke}
logging: {level: loud, format: xml}
"""
EVERYTHING_WRONG = [
    "noetl.yaml:1:29: unknown setting `retires.plugin.base_ms`. Did you mean 'retries.plugin.base_ms'?",
    "noetl.yaml:2:11: The setting NOETL_CAPACITY must be an integer of at least 1, not 'none'.",
    "noetl.yaml:3:17: unknown setting `metrics.prot`. Did you mean 'metrics.port'?",
    "noetl.yaml:3:26: The setting NOETL_METRICS_PORT must be a port of at most 65535.",
    "noetl.yaml:4:26: The setting NOETL_POLICIES_ON_STEP_FAIL must be one of halt, continue, route_edge:<label>, not 'explode'.",
    "noetl.yaml:5:39: The setting NOETL_ORCHESTRATOR_ROUTE_AFTER_ALL_SINKS can only be true.",
    "noetl.yaml:5:71: The setting NOETL_ORCHESTRATOR_RENDER_ARGS_SERVER_SIDE can only be true.",
    "noetl.yaml:6:24: The setting NOETL_TRACING_SAMPLE_RATE must be a number from 0 to 1, not '1.5'.",
    "noetl.yaml:6:39: The setting NOETL_TRACING_ENDPOINT must start with http:// or https://.",
    "noetl.yaml:6:57: The setting NOETL_TRACING_EXPORTER must be one of otlp, not 'smoke'.",
    "noetl.yaml:7:18: NOETL_LOGGING_LEVEL is `loud`, which is no level.",
    "noetl.yaml:7:32: The setting NOETL_LOGGING_FORMAT must be one of console, json, not 'xml'.",
    "The setting NOETL_LEASE_SECONDS must be an integer of at least 1, not 'x'.",
]


@pytest.mark.parametrize("command", ["serve", "up", "worker start", "runs", "config check"])
def test_everything_that_is_wrong_is_reported_at_once(folder: Folder, command: str) -> None:
    (folder.path / ".noetl" / "noetl.yaml").write_text(WRONG)
    ran = folder.call(*command.split(), NOETL_LEASE_SECONDS="x")
    lines = (ran.out if command == "config check" else ran.err).splitlines()
    assert ran.code == 2
    for wanted in EVERYTHING_WRONG:
        assert sum(wanted in line for line in lines) == 1, (wanted, lines)
    assert len(lines) == len(EVERYTHING_WRONG)


ISSUER = {"NOETL_OIDC_ISSUER": "https://id.example.org", "NOETL_OIDC_CLIENT_ID": "noetl"}
REFUSED_AT_THE_START = [
    ({**ISSUER, "NOETL_OIDC_ISSUER": "http://id.example.org"}, "NOETL_OIDC_ISSUER must be an https address"),
    ({**ISSUER, "NOETL_OIDC_CLIENT_ID": ""}, "NOETL_OIDC_ISSUER is set, but NOETL_OIDC_CLIENT_ID is not."),
    ({**ISSUER, "NOETL_OIDC_ROLES": "a=god"}, "NOETL_OIDC_ROLES has the group 'a'. Unknown role `god`"),
    ({"NOETL_QUEUE_KIND_LIMITS": "htp=3"}, "names the kind `htp`, which does not exist. Did you mean 'http'?"),
    ({"NOETL_QUEUE_KIND_LIMITS": "zzzz=3"}, "names the kind `zzzz`, which does not exist. The kinds are artifact, "),
]


@pytest.mark.parametrize(("given", "told"), REFUSED_AT_THE_START)
def test_a_check_finds_what_the_start_refuses(folder: Folder, given: dict[str, str], told: str) -> None:
    ran = folder.call("config", "check", **given)
    assert (ran.code, len(ran.out.splitlines())) == (2, 1)
    assert told in ran.out
    started = folder.call("serve", "--port", "0", **given)
    assert (started.code, told in started.err, "Traceback" in started.err) == (2, True, False)


def test_a_check_names_the_place_in_the_file(folder: Folder) -> None:
    (folder.path / ".noetl" / "noetl.yaml").write_text("queue:\n  kind_limits: htp=3\n")
    assert "noetl.yaml:2:16: NOETL_QUEUE_KIND_LIMITS names the kind `htp`" in folder.call("config", "check").out
    assert folder.call("config", "check", **ISSUER, NOETL_QUEUE_KIND_LIMITS="http=3").code == 0


def test_settings_are_shown_with_their_origin_and_without_secrets(folder: Folder) -> None:
    (folder.path / ".noetl" / "noetl.yaml").write_text(
        "capacity: 7\nretries: {plugin: {base_ms: 5}}\ntoken: hush-file\n"
    )
    (folder.path / "key").write_text("hush-key")
    given = {
        "NOETL_DB_URL": "postgresql://me:hush-db@db.example/noetl?password=hush-query",
        "NOETL_CAPACITY": "9",
        "NOETL_ENCRYPTION_KEY_FILE": "key",
        "NOETL_CREDENTIAL_PG": "hush-credential",
    }
    ran = folder.call("config", "show", "--origin", "--changed", **given)
    assert ran.code == 0, ran.err
    shown = {line.split()[0]: line.split(maxsplit=2)[1:] for line in ran.out.splitlines()}
    assert shown["capacity"] == ["9", "NOETL_CAPACITY"]
    assert shown["retries.plugin.base_ms"] == ["5", f"{folder.path}/.noetl/noetl.yaml:2:29"]
    assert shown["token"] == ["(secret)", f"{folder.path}/.noetl/noetl.yaml:3:8"]
    assert shown["encryption_key"] == ["(secret)", "NOETL_ENCRYPTION_KEY_FILE=key"]
    assert shown["db_url"] == ["postgresql://me:***@db.example/noetl?password=***", "NOETL_DB_URL"]
    assert "hush" not in ran.out + ran.err
    rows = [json.loads(line) for line in folder.call("config", "show", "--json", **given).out.splitlines()]
    keys = {row["key"]: row for row in rows}
    assert keys["retries.sink.max_attempts"] | {"variable": "", "value": ""} == {
        "key": "retries.sink.max_attempts",
        "variable": "",
        "value": "",
        "origin": "default",
        "default": True,
    }
    assert keys["retries.sink.max_attempts"]["value"] == "8"
    assert "hush" not in json.dumps(rows)


def test_variables_that_are_no_setting_are_reported(folder: Folder) -> None:
    ran = folder.call("runs", NOETL_METRICS_PROT="1", NOETL_CREDENTIAL_ANY="{}")
    assert "variable NOETL_METRICS_PROT is no setting. Did you mean 'NOETL_METRICS_PORT'?" in ran.err
    assert "CREDENTIAL" not in ran.err


def test_the_file_for_operation_starts_a_server_as_it_is(tmp_path: Path) -> None:
    """Its text is promised byte by byte; its values have their effects."""
    assert sha256(WHOLE.read_bytes()).hexdigest() == "3da64b1b7afbbdb00fe0e45cc92f8f036ce00bdb489aa839556746a610242ef0"
    with process(tmp_path, "up", environment={"NOETL_CONFIG": str(WHOLE)}) as (url, up):
        with httpx.Client(base_url=url, timeout=PATIENCE_S) as client:
            client.post("/api/catalog", json={"content": KEEPS_KEYS})
            started = client.post("/api/execute", json={"path": "test/keys", "wait_ms": 20_000}).json()
            assert (started["status"], started["result"]) == ("completed", {"key": "(masked secret)", "n": 1})
        exposed = httpx.get("http://127.0.0.1:9090/metrics").text
        assert 'noetl_executions_completed_total{status="ok",workflow="test/keys"} 1.0' in exposed
        up.send_signal(signal.SIGTERM)
        assert up.wait(PATIENCE_S) == 0
