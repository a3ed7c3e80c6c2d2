"""The order of keys in a formatted playbook."""

from __future__ import annotations

import pytest

from noetl.dsl.formatter import format_text
from tests.unit.dsl.formatter.test_format import assert_formats


def test_root_metadata_steps_arcs_and_tasks() -> None:
    assert_formats(
        """
        workflow:
          - tool:
              url: x
              kind: http
            next:
              spec: { mode: exclusive }
              arcs:
                - when: "{{ a }}"
                  step: b
                - { args: { z: 1, a: 2 }, step: c }
            step: a
          - next:
              - { when: true, step: c }
            tool:
              - code: x
                kind: python
                name: t
              - u:
                  url: y
                  kind: http
            desc: B
            step: b
        metadata: { path: p, name: n }
        kind: Playbook
        workload: { z: 1, a: 2 }
        apiVersion: noetl.io/v10
        """,
        """
        apiVersion: noetl.io/v10
        kind: Playbook
        metadata: { name: n, path: p }
        workload: { z: 1, a: 2 }

        workflow:
          - step: a
            tool:
              kind: http
              url: x
            next:
              spec: { mode: exclusive }
              arcs:
                - step: b
                  when: "{{ a }}"
                - { step: c, args: { z: 1, a: 2 } }

          - step: b
            desc: B
            tool:
              - name: t
                kind: python
                code: x
              - u:
                  kind: http
                  url: y
            next:
              - { step: c, when: true }
        """,
    )


def test_comments_move_with_their_key_and_the_head_of_the_file_stays() -> None:
    assert_formats(
        """
        # yaml-language-server: $schema=x
        kind: Playbook # k
        # about the version
        apiVersion: noetl.io/v10 # v
        workflow:
          # about the step
          - tool: # t
              # about url
              url: x
              # about kind
              kind: http
              # tail
            # about the name
            step: a # s
        """,
        """
        # yaml-language-server: $schema=x
        # about the version
        apiVersion: noetl.io/v10 # v
        kind: Playbook # k

        workflow:
          # about the step
          # about the name
          - step: a # s
            tool: # t
              # about kind
              kind: http
              # about url
              url: x
              # tail
        """,
    )


@pytest.mark.parametrize(
    "text",
    [
        "workflow:\n  - tool: { kind: noop }\n    surprise: 1\n    step: a\n",
        "workflow: later\nmystery: 1\nkind: Playbook\n", "workflow:\n  - tool: { url: x }\n    step_name: a\n",
        "workload:\n  step: a\n  kind: b\n  apiVersion: c\n", "workflow:\n  - next: b\n    loop: 1\n",
    ],
)  # fmt: skip
def test_maps_that_may_be_something_else_keep_their_order(text: str) -> None:
    assert format_text(text) == text


def test_a_merge_stays_in_front() -> None:
    text = "workload: &w { a: 1 }\n\nworkflow:\n  - <<: *w\n    step: a\n    tool: { <<: *w, kind: noop }\n"
    formatted = format_text(text)
    assert "- <<: *w\n    step: a" in formatted


def test_an_alias_does_not_move_before_its_anchor() -> None:
    text = "workload: &w { a: 1 }\nmetadata: *w\n"
    assert format_text(text) == text


def test_flow_maps_with_comments_inside_keep_their_order() -> None:
    text = "metadata:\n  {\n    path: p, # where\n    name: n\n  }\n"
    assert format_text(text) == text


def test_the_empty_line_above_a_map_stays_above_it() -> None:
    assert_formats(
        """
        apiVersion: noetl.io/v10
        workflow:
          - step: a
            tool: { kind: noop }

          - tool:

              message: x
              kind: noop

            next: c
            step: b
        """,
        """
        apiVersion: noetl.io/v10

        workflow:
          - step: a
            tool: { kind: noop }

          - step: b
            tool:
              kind: noop
              message: x

            next: c
        """,
    )


def test_empty_maps_have_nothing_to_order() -> None:
    text = "metadata: {}\n\nworkflow:\n  - { step: a, next: [{}], tool: {} }\n"
    assert format_text(text) == "metadata: {}\n\nworkflow:\n  - { step: a, tool: {}, next: [{}] }\n"
