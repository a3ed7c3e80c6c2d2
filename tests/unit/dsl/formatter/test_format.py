"""How a formatted playbook looks, one habit at a time."""

from __future__ import annotations

from textwrap import dedent

import pytest

from noetl.dsl.formatter import format_text


def text_of(written: str) -> str:
    return dedent(written).lstrip("\n")


def assert_formats(before: str, after: str) -> None:
    expected = text_of(after)
    assert format_text(text_of(before)) == expected
    assert format_text(expected) == expected


def test_levels_are_two_spaces_and_items_stand_below_their_key() -> None:
    assert_formats(
        """
        a:
            b:
               - x
               -   y:  1
                   z: 2
        c:
        - 1
        -
          d: 2
        - - 3
          - - 4
        -
          - 5
        """,
        """
        a:
          b:
            - x
            - y: 1
              z: 2

        c:
          - 1
          - d: 2
          - - 3
            - - 4
          - - 5
        """,
    )


def test_spaces_around_marks() -> None:
    assert_formats(
        """
        a  :   1
        b: {x:   1,y: [ 1,2 ,3 ],"z":{}}   # c
        d: [  ]
        e: {  }
        f: [a: b, 1]
        g: {k}
        """,
        """
        a: 1
        b: { x: 1, y: [1, 2, 3], "z": {} }   # c
        d: []
        e: {}
        f: [a: b, 1]
        g: { k }
        """,
    )


def test_white_space_at_line_ends_and_carriage_returns_go() -> None:
    assert format_text("a: 1  \r\nb: \t\r\n  - x \r\n") == "a: 1\n\nb:\n  - x\n"


@pytest.mark.parametrize("text", ["a: 1", "a: 1\n\n\n", "\n\na: 1\n", "a: 1\n   \n", "\ufeffa: 1\n"])
def test_the_file_begins_with_text_and_ends_with_one_newline(text: str) -> None:
    assert format_text(text) == "a: 1\n"


def test_at_most_one_empty_line_and_none_at_the_start_of_a_level() -> None:
    assert_formats(
        """
        a:


          b: 1



          c: 2


        d: 3


        # c

        """,
        """
        a:
          b: 1

          c: 2

        d: 3

        # c
        """,
    )


def test_empty_lines_between_sections_and_steps() -> None:
    assert_formats(
        """
        apiVersion: noetl.io/v10
        kind: Playbook
        metadata:
          name: x
        workload: { a: 1 }
        workflow:
          - step: a
            tool: { kind: noop }
          # about b
          - step: b
            next: c
          - step: c
            tool: { kind: noop }
        """,
        """
        apiVersion: noetl.io/v10
        kind: Playbook
        metadata:
          name: x

        workload: { a: 1 }

        workflow:
          - step: a
            tool: { kind: noop }

          # about b
          - step: b
            next: c

          - step: c
            tool: { kind: noop }
        """,
    )


def test_short_steps_may_stand_together() -> None:
    text = "workflow:\n  - { step: a, next: b }\n  - { step: b, tool: { kind: noop } }\n"
    assert format_text(text) == text


def test_quotes_are_double_where_nothing_has_to_be_escaped() -> None:
    assert_formats(
        r"""
        a: 'x'
        b: 'it''s'
        c: 'say "so"'
        d: 'C:\dir'
        e: "x\n"
        'f': ['x', "y"]
        g: 'a
          b'
        """,
        r"""
        a: "x"
        b: "it's"
        c: 'say "so"'
        d: 'C:\dir'
        e: "x\n"
        "f": ["x", "y"]

        g: 'a
          b'
        """,
    )


def test_block_scalars_keep_their_content() -> None:
    assert_formats(
        """
        workload:
            a: |    # why
                  x = 1

                     y = 2
                  # no comment
            b: >-
             folded
             text
            c: |4
                  indented first
                z
            d: |+
             kept


            e: |+
             one
            f: >
        """,
        """
        workload:
          a: |    # why
            x = 1

               y = 2
            # no comment
          b: >-
            folded
            text
          c: |2
              indented first
            z
          d: |+
            kept


          e: |
            one
          f: >
        """,
    )


def test_white_space_inside_a_block_scalar_is_content() -> None:
    text = "workload:\n    a: |\n        x  \n          \n        y\n"
    assert format_text(text) == "workload:\n  a: |\n    x  \n      \n    y\n"


def test_a_block_scalar_without_a_last_newline_keeps_none() -> None:
    assert format_text("a: |\n    x") == "a: |-\n  x\n"


def test_values_of_several_lines() -> None:
    assert_formats(
        r"""
        a: one
              two

              three
        b:
              one
              two
        c: "one \
              two\

              three"
        d:
            just one
        """,
        r"""
        a: one
          two

          three

        b:
          one
          two

        c: "one \
          two\

          three"

        d: just one
        """,
    )


def test_flow_collections_on_several_lines_are_joined_where_they_fit() -> None:
    word = "w" * 50
    assert_formats(
        f"""
        a: {{ x: 1,
             y: 2 }}
        b: [ {word},
           {word}, {{ z: 1 }} ]
        c:
          - [ {word},
              {word} ]
        d: [
          1, # one
          # two
          2,
        ]   # end
        e: [{word}, {word}]
        """,
        f"""
        a: {{ x: 1, y: 2 }}

        b:
          [
            {word},
            {word},
            {{ z: 1 }}
          ]

        c:
          - [
              {word},
              {word}
            ]

        d:
          [
            1, # one
            # two
            2
          ]   # end

        e: [{word}, {word}]
        """,
    )


def test_comments_stay_with_what_they_are_about() -> None:
    assert_formats(
        """
        # head

        # about a
        a: # beside a
            # about b
            b: 1 # beside b
            # tail of a
        # about c
        c:
        -   1
        # about 2
        -   2
        # about d
        d:
          - # beside the dash
            x: 1
          -
            # about y
            y: 2
              # deeper
        e: # beside e
          value
        f:
          # above the value
          value # beside the value
        # last
        """,
        """
        # head

        # about a
        a: # beside a
          # about b
          b: 1 # beside b
          # tail of a

        # about c
        c:
          - 1
          # about 2
          - 2

        # about d
        d:
          - # beside the dash
            x: 1
          # about y
          - y: 2
            # deeper

        e: value # beside e
        f:
          # above the value
          value # beside the value
        # last
        """,
    )


def test_anchors_aliases_tags_and_merges_stay() -> None:
    assert_formats(
        """
        a: &x   !!map
            b: &y    1
        c:
        - &z
          d: !!str   2
        - *y
        e: {<<:   *x, f: *y}
        *y :  g
        h: &n
        """,
        """
        a: &x !!map
          b: &y 1

        c:
          - &z
            d: !!str 2
          - *y

        e: { <<: *x, f: *y }
        *y : g
        h: &n
        """,
    )


def test_a_document_end_stays() -> None:
    assert format_text("a:   |+\n    x\n\n... \n# c  \n\n\n") == "a: |+\n  x\n\n...\n# c\n"


def test_a_document_start_stays() -> None:
    assert_formats(
        """
        # c
        %YAML 1.2


        ---   # d

        a:   1
        """,
        """
        # c
        %YAML 1.2

        ---   # d
        a: 1
        """,
    )


@pytest.mark.parametrize(
    "text",
    [
        "", "# only a comment  \n", "a:   {{ x }}\n", "a:   1\na: 2\n", "a:   [\n", "-   a\n", '{"a":   1}\n',
        "? a\n:   b\n", "--- !!map\na:   1\n", "a:   x\u2028  y\n", "a:   1\rb: 2\r",
    ],
)  # fmt: skip
def test_what_is_broken_or_written_in_a_rare_way_is_left_alone(text: str) -> None:
    assert format_text(text) == text


def test_numbers_that_are_not_numbers_are_equal_enough() -> None:
    assert format_text("a:   .nan\n") == "a: .nan\n"
