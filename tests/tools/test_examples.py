"""Every example of every kind is a task without diagnostics."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from noetl.dsl.grammar.kinds import KindExample
from noetl.dsl.validate import validate
from noetl.tools import kinds

# What the examples take for granted: the inputs, the credentials and the named task of one playbook.
PLAYBOOK = dedent(
    """
    apiVersion: noetl.io/v10
    kind: Playbook
    metadata:
      name: example
      path: examples/one_task
    keychain:
      - name: orders_api
      - name: pg_main
      - name: sf_main
      - name: lake_catalog
      - name: gcs_reader
      - name: s3_writer
      - name: nats_main
      - name: weather_api
    workload:
      api_url: "https://api.example.com"
      city: Vienna
      customer_id: c-7
      folder: /srv/data
      opens_at: "2030-01-01T08:00:00Z"
      order_id: 7
      orders: [{ id: 7, amount: 12.5 }]
      report: "id,amount"
      report_ref: noetl://execution/1/step/load/task/load/run/1/attempt/1
      since: "2030-01-01"
    workbook:
      - name: normalise
        kind: python
        code: |
          result = orders
    workflow:
      - step: example
        tool:
    """
).lstrip()

EXAMPLES = [(name, example) for name, kind in kinds().items() for example in kind.examples]


@pytest.mark.parametrize(("name", "example"), EXAMPLES, ids=[f"{name}: {example.title}" for name, example in EXAMPLES])
def test_an_example_is_a_good_task(name: str, example: KindExample) -> None:
    text = PLAYBOOK + indent(example.yaml, "      ")
    assert [f"{found.code} {found.line} {found.message}" for found in validate(text, "example.yaml", kinds())] == []
