"""Rules and dashboards name only series and labels that exist."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import pytest
import yaml

from noetl.observe.series import SERIES
from scripts.deploy import ALERTS, DASHBOARDS, ROOT, RUNBOOK_OF, RUNBOOKS, files

_NAME = re.compile(r"\b(?:noetl_\w+|dlq_entries)\b")
_MATCHED = re.compile(r"(\w+)\{([^}]*)\}")
_BY = re.compile(r"by \(([^)]*)\)")
_PARTS = re.compile(r"_(bucket|sum|count)$")


def expressions() -> Iterator[tuple[str, str]]:
    yield from ((one.name, one.expr) for one in ALERTS)
    for title, panels in DASHBOARDS.values():
        yield from ((f"{title}: {panel.title}", expr) for panel in panels for expr in panel.lines.values())


def of(name: str) -> str:
    """Return the series that a name in an expression belongs to."""
    whole = _PARTS.sub("", name)
    return whole if whole in SERIES and SERIES[whole].type == "histogram" else name


@pytest.mark.parametrize(("where", "expr"), list(expressions()))
def test_an_expression_names_what_exists(where: str, expr: str) -> None:
    names = {of(name) for name in _NAME.findall(expr)}
    assert names, where
    assert names <= set(SERIES)
    labels = set.intersection(*(set(SERIES[name].labels) for name in names))
    grouped = {label.strip() for found in _BY.findall(expr) for label in found.split(",")}
    assert grouped - {"le"} <= labels
    for name, matchers in _MATCHED.findall(expr):
        assert {one.partition("=")[0] for one in matchers.split(",")} <= set(SERIES[of(name)].labels)


def test_the_alerts_that_operators_were_promised_are_there() -> None:
    promised = {"HighDLQGrowth", "StepFailureRateHigh", "WorkerStalled", "SinkErrorRateHigh", "ExecutionSLAExceeded"}
    assert promised <= {one.name for one in ALERTS}
    assert set(RUNBOOK_OF) <= {one.name for one in ALERTS}
    assert all((ROOT / page).is_file() for page in (RUNBOOKS, *RUNBOOK_OF.values()))


def test_the_files_are_those_that_the_script_writes() -> None:
    for path, text in files().items():
        assert (ROOT / path).read_text(encoding="utf-8") == text, f"{path} is stale: run `python scripts/deploy.py`"
    folders = (ROOT / "deploy" / "grafana", ROOT / "deploy" / "prometheus")
    assert {str(one.relative_to(ROOT)) for folder in folders for one in folder.iterdir()} == set(files())


def test_rules_and_dashboards_can_be_read() -> None:
    for path, text in files().items():
        found = yaml.safe_load(text) if path.endswith(".yaml") else json.loads(text)
        assert found
        if path.endswith(".json"):
            ids = [panel["id"] for panel in found["panels"]]
            assert len(set(ids)) == len(ids)
            assert all(panel["targets"] for panel in found["panels"])
