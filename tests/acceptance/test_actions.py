"""Sub-commands of `dlq`, `outbox`, `token` and others: help, options, typos."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.acceptance.run import noetl

PLACE = {"--json", "--server"}
LETTERS = {"--group", "--execution", "--path", "--step", "--kind", *PLACE}
ACTIONS: dict[str, dict[str, set[str]]] = {
    "dlq": {
        "list": {"--status", "--limit", *LETTERS},
        "groups": {"--status", "--limit", *LETTERS},
        "show": PLACE,
        "replay": {"--all", "--patch", "--dry-run", "--wait", *LETTERS},
        "discard": {"--all", "--reason", *LETTERS},
    },
    "outbox": {
        "list": {"--state", "--limit", *PLACE},
        "show": PLACE,
        "retry": {"--dead", *PLACE},
        "discard": {"--dead", "--reason", *PLACE},
        "drain": {"--server"},
    },
    "token": {
        "create": {"--role", "--name", "--expires", "--pool", "--namespace", *PLACE},
        "list": PLACE,
        "revoke": PLACE,
        "show": {"--server"},
    },
    "user": {
        "create": {"--role", "--namespace", "--group", "--password", "--no-password", *PLACE},
        "list": PLACE,
        "set": {"--role", "--namespace", "--group", *PLACE},
        "passwd": {"--password", *PLACE},
        "disable": PLACE,
        "enable": PLACE,
        "delete": PLACE,
    },
    "group": {"set": {"--role", "--namespace", *PLACE}, "list": PLACE, "delete": PLACE},
    "audit": {
        "list": {"--actor", "--entity", "--limit", *PLACE},
        "verify": {"--expect", *PLACE},
        "export": {"--file", "--server"},
    },
    "context": {"add": {"--token"}, "use": set(), "list": {"--json"}, "remove": set()},
    "worker": {
        "start": {"--server", "--pool", "--tags", "--capacity", "--token", "--grace"},
        "list": {"--token", *PLACE},
        "drain": {"--pool", "--token", *PLACE},
    },
    "credential": {
        "put": {"--data", "--kind", *PLACE},
        "list": PLACE,
        "show": PLACE,
        "test": {"--url", *PLACE},
        "delete": PLACE,
        "key": {"--json"},
    },
    "schedule": {
        "create": {
            "--cron",
            "--every",
            "--date",
            "--at",
            "--timezone",
            "--jitter",
            "--catch-up",
            "--overlap",
            "--time-as",
            "--version",
            "--paused",
            "--set",
            "--payload",
            *PLACE,
        },
        "list": {"--path", *PLACE},
        "show": {"--limit", *PLACE},
        "next": {"--count", *PLACE},
        "backfill": {"--from", "--to", "--at-once", "--dry-run", "--follow", *PLACE},
        "progress": {"--follow", *PLACE},
        "pause": PLACE,
        "resume": PLACE,
        "delete": PLACE,
    },
    "webhook": {
        "create": {
            "--auth",
            "--credential",
            "--header",
            "--prefix",
            "--encoding",
            "--timestamp-header",
            "--tolerance",
            "--dedup",
            "--payload",
            "--wait-up-to",
            "--version",
            "--paused",
            *PLACE,
        },
        "list": {"--path", *PLACE},
        "show": PLACE,
        "pause": PLACE,
        "resume": PLACE,
        "delete": PLACE,
        "test": {"--body", "--content-type", "--header", *PLACE},
    },
    "subscription": {
        "create": {
            "--source",
            "--auth",
            "--channel",
            "--table",
            "--key",
            "--begin",
            "--folder",
            "--pattern",
            "--after",
            "--format",
            "--url",
            "--params",
            "--items",
            "--id",
            "--cursor",
            "--every",
            "--payload",
            "--version",
            "--paused",
            *PLACE,
        },
        "list": {"--path", *PLACE},
        "show": PLACE,
        "pause": PLACE,
        "resume": PLACE,
        "delete": PLACE,
        "test": PLACE,
    },
    "trigger": {
        "create": {"--after", "--status", "--tag", "--payload", "--version", "--paused", *PLACE},
        "list": {"--path", *PLACE},
        "show": PLACE,
        "pause": PLACE,
        "resume": PLACE,
        "delete": PLACE,
    },
    "notification": {
        "create": {"--on", "--channel", "--credential", "--url", "--to", "--sla", "--paused", *PLACE},
        "list": PLACE,
        "show": PLACE,
        "pause": PLACE,
        "resume": PLACE,
        "delete": PLACE,
        "test": PLACE,
    },
    "db": {"init": {"--db", "--json"}, "migrate": {"--db", "--json"}, "check": {"--db", "--deep", "--json"}},
    "admin": {
        "rebuild": {"--check", "--store"},
        "backup": {"--store"},
        "restore": {"--store"},
        "gc": {"--dry-run", "--json", "--store"},
        "prune": {"--older-than", "--before", "--status", "--dry-run", "--archive", "--store"},
        "export": {"--reset", "--json", "--store"},
    },
    "playbooks": {
        "list": {"--search", "--limit", "--json", "--server"},
        "show": {"--version", "--json", "--server"},
        "delete": {"--version", "--json", "--server"},
    },
}
TYPOS = {
    "dlq": ("lst", "list"),
    "outbox": ("retri", "retry"),
    "token": ("creat", "create"),
    "context": ("ad", "add"),
    "worker": ("drian", "drain"),
    "credential": ("delet", "delete"),
    "schedule": ("paus", "pause"),
    "webhook": ("tst", "test"),
    "trigger": ("resum", "resume"),
    "notification": ("delet", "delete"),
    "subscription": ("paus", "pause"),
    "db": ("migrat", "migrate"),
    "admin": ("rebuld", "rebuild"),
    "playbooks": ("shw", "show"),
}


@pytest.mark.parametrize(("group", "action"), [(group, action) for group, found in ACTIONS.items() for action in found])
def test_an_action_has_a_summary_and_its_own_options(group: str, action: str) -> None:
    ran = noetl(group, action, "--help")
    assert ran.code == 0, ran.err
    usage, _, summary, *_ = ran.out.splitlines()
    assert usage.startswith(f"Usage: noetl {group} {action}")
    assert re.fullmatch(r"  [A-Z][a-z]+ .{10,}", summary), summary
    options = set(re.findall(r"^  (--[\w-]+)", ran.out, re.MULTILINE))
    assert options == ACTIONS[group][action]


@pytest.mark.parametrize("group", ACTIONS)
def test_a_group_lists_its_actions_each_on_one_line(group: str) -> None:
    ran = noetl(group, "--help")
    assert ran.code == 0, ran.err
    listed = ran.out.partition("Commands:\n")[2].splitlines()
    assert [line.split()[0] for line in listed] == list(ACTIONS[group])
    assert not [line for line in listed if line.endswith("...")]


@pytest.mark.parametrize("group", TYPOS)
def test_a_wrong_action_names_the_nearest(group: str) -> None:
    typo, meant = TYPOS[group]
    ran = noetl(group, typo)
    assert (ran.code, ran.out) == (2, "")
    assert f"No such command '{typo}'. Did you mean '{meant}'?" in ran.err


@pytest.mark.parametrize("group", [group for group in ACTIONS if group != "worker"])
def test_a_group_alone_prints_its_help(group: str) -> None:
    ran = noetl(group)
    assert f"Usage: noetl {group} " in ran.out + ran.err
    assert set(ACTIONS[group]) <= set((ran.out + ran.err).split())


def test_options_may_stand_before_the_action(tmp_path: Path) -> None:
    home = str(tmp_path)
    ran = noetl("context", "--json", "list", XDG_CONFIG_HOME=home)
    assert (ran.code, ran.out.startswith('{"name":"local"')) == (0, True), ran.err
    away = noetl("worker", "--server", "http://127.0.0.1:9", "list", XDG_CONFIG_HOME=home)
    assert (away.code, "http://127.0.0.1:9" in away.err) == (1, True)
    value = noetl("token", "--name", "list", "revoke", "x", cwd=tmp_path, XDG_CONFIG_HOME=home)
    assert (value.code, "--name" in value.err) == (2, True)  # `list` is the value of --name, not the action


def test_a_worker_starts_without_an_action_too(tmp_path: Path) -> None:
    for words in (("worker",), ("worker", "start")):
        ran = noetl(*words, cwd=tmp_path, XDG_CONFIG_HOME=str(tmp_path), NOETL_SERVER_URL="")
        assert ran.code == 2, ran.err
        assert "server" in ran.err
