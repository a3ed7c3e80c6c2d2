"""Hostile documents of any size: many of everything, deep, long, knotted.

Each is a function of a size in bytes, so that the work at twice the size can be compared. `of_rules` repeats the bad example
of every rule of the checker.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from noetl.dsl.reading.nodes import plain
from noetl.dsl.reading.parse import parse
from noetl.dsl.rules import RULES

Make = Callable[[int], str]
HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: {name: hostile, path: test/hostile}\n"
NOOP = "{kind: noop}"


def filled(size: int, part: Callable[[int], str], head: str = "", tail: str = "") -> str:
    """Return numbered parts, up to a size."""
    parts, length, number = [head], len(head) + len(tail), 0
    while length < size:
        parts.append(part(number))
        length += len(parts[-1])
        number += 1
    return "".join((*parts, tail))


def steps(part: Callable[[int], str], head: str = "") -> Make:
    """A workflow of many steps."""
    return lambda size: filled(size, part, f"{HEAD}{head}workflow:\n")


def one_step(part: Callable[[int], str], before: str = "", after: str = "", head: str = "") -> Make:
    """A workflow of one step with many parts."""
    return lambda size: filled(size, part, f"{HEAD}{head}workflow:\n  - step: a\n{before}", after)


def lines(part: Callable[[int], str], tail: str = f"workflow:\n  - step: a\n    tool: {NOOP}\n") -> Make:
    """Many lines at the root, before the workflow."""
    return lambda size: filled(size, part, HEAD, tail)


def schema(make: Callable[[int], Any]) -> Make:
    """A playbook whose workload schema is made for a size."""
    return lambda size: (
        f"{HEAD}executor: {json.dumps({'spec': {'workload_schema': make(size)}})}\n"
        f"workload: {{a: 1}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n"
    )


def _step(number: int, more: str = "", tool: str = NOOP) -> str:
    return f"  - step: s{number}\n    tool: {tool}\n{more}"


def _complete(size: int) -> str:
    count = max(2, int((size / 6) ** 0.5))
    arcs = ", ".join(f"s{number}" for number in range(count))
    return HEAD + "workflow:\n" + "".join(_step(number, f"    next: [{arcs}]\n") for number in range(count))


def _layers(size: int) -> str:
    """Layers of steps, each with an arc to every step of the next layer."""
    width = 20
    arcs = [", ".join(f"s{layer * width + one}" for one in range(width)) for layer in range(size // 2000 + 2)]
    return (
        HEAD
        + "workflow:\n"
        + "".join(
            _step(layer * width + one, f"    next: {{spec: {{mode: inclusive}}, arcs: [{_arcs(arcs[layer + 1])}]}}\n")
            for layer in range(len(arcs) - 1)
            for one in range(width)
        )
    )


def _arcs(names: str) -> str:
    return ", ".join(f"{{step: {name}}}" for name in names.split(", "))


def _forks_and_joins(number: int) -> str:
    return (
        f"  - step: f{number}\n    tool: {NOOP}\n    set: {{ctx.k: 1}}\n"
        f"    next: {{spec: {{mode: inclusive}}, arcs: [{{step: l{number}}}, {{step: r{number}}}]}}\n"
        f"  - step: l{number}\n    tool: {NOOP}\n    set: {{ctx.k: 2}}\n    next: j{number}\n"
        f"  - step: r{number}\n    tool: {NOOP}\n    set: {{ctx.k: 3}}\n    next: j{number}\n"
        f"  - step: j{number}\n    spec: {{join: all}}\n    tool: {NOOP}\n    next: f{number + 1}\n"
    )


def _wide_fork(size: int) -> str:
    count = size // 90
    arcs = ", ".join(f"{{step: s{number}}}" for number in range(count))
    middle = "".join(_step(number, "    set: {ctx.k: 1}\n    next: end\n") for number in range(count))
    return (
        f"{HEAD}workflow:\n  - step: start\n    tool: {NOOP}\n    next: {{spec: {{mode: inclusive}}, arcs: [{arcs}]}}\n"
        f"{middle}  - step: end\n    spec: {{join: all}}\n    tool: {NOOP}\n"
    )


def _long_key_with_many_children(size: int) -> str:
    return filled(size, lambda n: f"  k{n}: [{n}\n", f"{HEAD}? {'k' * (size // 2)}\n:\n", "").replace("[", "")


def _repeated_name(size: int) -> str:
    name = "n" * (size // 4)
    return filled(size, lambda n: _step(n, "    next: *name\n"), f"{HEAD}workload: {{name: &name {name}}}\nworkflow:\n")


def _laughs(size: int) -> str:
    many = f"a0: &a0 [{'lol,' * 9}]\n" + "".join(f"a{n}: &a{n} [{f'*a{n - 1},' * 9}]\n" for n in range(1, 10))
    return HEAD + many + "#" * size


def _small_laughs(size: int) -> str:
    """As many values as aliases may make, from a few lines."""
    many = ["  a0: &a0 [1,1,1,1,1,1,1,1]\n", *(f"  a{n}: &a{n} [{f'*a{n - 1},' * 8}]\n" for n in range(1, 5))]
    return f"{HEAD}workload:\n{''.join(many)}workflow:\n  - step: a\n    tool: {NOOP}\n" + "#" * (size // 2)


def _aliased_steps(size: int) -> str:
    """One large step, many times."""
    task = ", ".join(f"{{kind: noop, name: t{n}, message: '{{{{ ctx.k{n} }}}}'}}" for n in range(100))
    return filled(size, lambda n: f"  - {{step: s{n}, tool: *t}}\n", f"{HEAD}workload: {{t: &t [{task}]}}\nworkflow:\n")


def _merges(size: int) -> str:
    return filled(
        size,
        lambda n: f"    m{n}: {{<<: [*m, *m, *m], own{n}: 1}}\n",
        f"{HEAD}workload:\n    m: &m {{{', '.join(f'k{n}: 1' for n in range(50))}}}\n",
        f"workflow:\n  - step: a\n    tool: {NOOP}\n",
    )


def _nested(opening: str, closing: str) -> Make:
    return lambda size: (
        HEAD + "workload: " + opening * (size // (len(opening) + len(closing))) + closing * (size // 9) + "\n"
    )


def _deep_groups(size: int) -> str:
    """Many values at the greatest depth."""
    deep = "[" * 90 + "1" + "]" * 90
    return filled(
        size, lambda n: f"  d{n}: {deep}\n", f"{HEAD}workload:\n", f"workflow:\n  - step: a\n    tool: {NOOP}\n"
    )


def _template(text: Callable[[int], str]) -> Make:
    """One step whose message is made for a size."""
    return lambda size: f"{HEAD}workflow:\n  - step: a\n    tool: {{kind: noop, message: {json.dumps(text(size))}}}\n"


def _code(text: Callable[[int], str], kind: str = "python", field: str = "code") -> Make:
    return lambda size: f"{HEAD}workflow:\n  - step: a\n    tool: {{kind: {kind}, {field}: {json.dumps(text(size))}}}\n"


def _reads(number: int) -> str:
    return f"{{{{ ctx.key_{number} }}}}"


def _chain_of_steps(number: int) -> str:
    return _step(number, f"    next: s{number + 1}\n", f"{{kind: noop, message: '{{{{ s{number // 2} }}}}'}}")


def _gates(number: int) -> str:
    rule = f"{{when: '{{{{ ctx.k{number + 1} }}}}', then: {{allow: true}}}}"
    return _step(number, f"    spec: {{policy: {{admit: {{rules: [{rule}]}}}}}}\n    set: {{ctx.k{number}: 1}}\n")


def _compensations(number: int) -> str:
    return _step(number, f"    compensate: s{number + 1}\n    next: s{number + 2}\n")


def _ladder_of_refs(size: int) -> Any:
    """Each definition refers twice to the next one: checking a value takes 2ⁿ steps."""
    count = min(60, size // 60)
    return {
        "$ref": "#/$defs/d0",
        "$defs": {
            **{
                f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(count)
            },
            f"d{count}": {"type": "object"},
        },
    }


def _nested_schema(word: str, width: int) -> Callable[[int], Any]:
    def make(size: int) -> Any:
        found: Any = {"type": "object"}
        for _ in range(min(30, size // 30)):
            found = {word: [found] * width} if width > 1 else {word: found}
            if len(json.dumps(found)) > size:
                break
        return found

    return make


DOCUMENTS: dict[str, Make] = {
    # names
    "unknown arcs": steps(lambda n: _step(n, f"    next: missing_step_{n}\n")),
    "unknown arcs in lists": one_step(lambda n: f"missing_{n}, ", f"    tool: {NOOP}\n    next: [", "]\n"),
    "unknown keys at the root": lines(lambda n: f"unknown_key_{n}: 1\n"),
    "unknown keys of a step": one_step(lambda n: f"    unknown_key_{n}: 1\n", f"    tool: {NOOP}\n"),
    "unknown keys of many steps": steps(lambda n: _step(n, f"    nxet{n}: s{n + 1}\n")),
    "unknown keys of a tool": one_step(lambda n: f"      metod{n}: 1\n", "    tool:\n      kind: http\n      url: http://x\n"),
    "unknown kinds": steps(lambda n: _step(n, tool=f"{{kind: htpt_{n}}}")),
    "unknown names": one_step(lambda n: f"{{{{ unknown_{n} }}}}", "    tool: {kind: noop, message: '", "'}\n"),
    "unknown names in many templates": steps(lambda n: _step(n, tool=f"{{kind: noop, message: '{{{{ nmae_{n} }}}}'}}")),
    "unknown names beside many known": lambda size: filled(
        size, lambda n: _step(n, tool=f"{{kind: noop, message: '{{{{ nmae_{n} }}}}'}}"),
        filled(size // 2, lambda n: f"  name_{n}: 1\n", f"{HEAD}workload:\n") + "workflow:\n",
    ),
    "unknown ctx keys": one_step(lambda n: f"{{{{ ctx.key_{n} }}}}", "    tool: {kind: noop, message: '", "'}\n"),
    "slips of ctx keys": lambda size: filled(
        size, lambda n: f"  - step: r{n}\n    tool: {{kind: noop, message: '{{{{ ctx.word{n}kye }}}}'}}\n",
        filled(size // 2, lambda n: f"  - step: s{n}\n    set: {{ctx.word{n}key: 1}}\n", f"{HEAD}workflow:\n"),
    ),
    "unknown workload keys": lambda size: filled(
        size, lambda n: f"{{{{ workload.kye_{n} }}}}",
        filled(size // 2, lambda n: f"  key_{n}: 1\n", f"{HEAD}workload:\n") + "workflow:\n  - step: a\n    tool: {kind: noop, message: '", "'}\n",
    ),
    "unknown filters": _template(lambda size: filled(size, lambda n: f"{{{{ 1 | upperr{n} }}}}")),
    "unknown functions": _template(lambda size: filled(size, lambda n: f"{{{{ nwo{n}() }}}}")),
    "unknown tests": _template(lambda size: filled(size, lambda n: f"{{{{ 1 is defned{n} }}}}")),
    "unknown methods": _template(lambda size: filled(size, lambda n: f"{{{{ ctx.a.uper{n}() }}}}")),
    "unknown steps in functions": _template(lambda size: filled(size, lambda n: f"{{{{ done('stpe_{n}') }}}}")),
    "unknown workbook tasks": lambda size: filled(
        size, lambda n: _step(n, tool=f"{{kind: workbook, task: taks_{n}}}"),
        filled(size // 2, lambda n: f"  - {{name: task_{n}, kind: noop}}\n", f"{HEAD}workbook:\n") + "workflow:\n",
    ),
    "unknown credentials": lambda size: filled(
        size, lambda n: _step(n, tool=f"{{kind: http, url: http://x, auth: cerd_{n}}}"),
        filled(size // 2, lambda n: f"  - {{name: cred_{n}, kind: bearer}}\n", f"{HEAD}keychain:\n") + "workflow:\n",
    ),
    "unknown keychain reads": lambda size: filled(
        size, lambda n: _step(n, tool=f"{{kind: http, url: '{{{{ keychain.cerd_{n} }}}}'}}"),
        filled(size // 2, lambda n: f"  - {{name: cred_{n}, kind: bearer}}\n", f"{HEAD}keychain:\n") + "workflow:\n",
    ),
    "unknown compensations": steps(lambda n: _step(n, f"    compensate: undo_{n}\n")),
    "unknown jumps": one_step(
        lambda n: f"      - {{kind: noop, name: t{n}, spec: {{policy: {{rules: [{{else: {{do: jump, to: x{n}}}}}]}}}}}}\n",
        "    tool:\n",
    ),
    "unknown route edges": steps(lambda n: _step(n, f"    spec: {{on_step_fail: 'route_edge:e{n}'}}\n    next: [{{step: s0, label: f{n}}}]\n")),
    "unknown formats": schema(lambda size: {"properties": {f"p{n}": {"format": f"datee{n}"} for n in range(size // 40)}}),
    "unknown types": schema(lambda size: {"properties": {f"p{n}": {"type": f"strin{n}"} for n in range(size // 40)}}),
    "unknown arguments": steps(lambda n: _step(n, f"    next: [{{step: s{n + 1}, args: {{a{n}: 1}}}}]\n", f"{{kind: noop, message: '{{{{ args.b{n} }}}}'}}")),
    "unknown result fields": steps(lambda n: _step(n, f"    next: s{n + 1}\n", f"{{kind: http, url: 'http://x/{{{{ s{max(0, n - 1)}.stauts }}}}'}}")),
    "unknown outcome fields": steps(lambda n: _step(n, f"    next: [{{step: s{n + 1}, when: '{{{{ outcome.stauts{n} }}}}'}}]\n")),
    "unknown iteration keys": steps(lambda n: _step(n, f"    loop: {{in: [1], iterator: i{n}}}\n", f"{{kind: noop, message: '{{{{ iter.inedx{n} }}}}'}}")),
    "unknown required features": lambda size: filled(size, lambda n: f"feature_{n}, ", f"{HEAD}executor: {{requires: {{features: [", f"]}}}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n"),
    "unknown required tools": lambda size: filled(size, lambda n: f"tool_{n}, ", f"{HEAD}executor: {{requires: {{tools: [", f"]}}}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n"),
    # duplicates
    "duplicate steps": steps(lambda n: _step(0)),
    "duplicate keys": lines(lambda n: "labels: 1\n"),
    "duplicate keys of a map": lambda size: filled(size, lambda n: "k: 1, ", f"{HEAD}workload: {{", f"}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n"),
    "duplicate labels": one_step(lambda n: "      - {kind: noop, name: t}\n", "    tool:\n"),
    "duplicate credentials": lines(lambda n: "  - {name: c, kind: bearer}\n" if n else "keychain:\n  - {name: c}\n"),
    "duplicate writes": one_step(lambda n: f"      - {{kind: noop, name: t{n}, set: {{ctx.k: 1}}}}\n", "    tool:\n"),
    "duplicate arcs": one_step(lambda n: "      - {step: a, when: '{{ ctx.k }}'}\n", f"    tool: {NOOP}\n    next:\n"),
    "aliases of one field": steps(lambda n: _step(n, "    args: {a: 1}\n    input: {a: 1}\n")),
    # graphs
    "complete graph": _complete,
    "layers": _layers,
    "long chain": steps(lambda n: _step(n, f"    next: s{n + 1}\n")),
    "long chain of results": steps(_chain_of_steps),
    "long chain, backwards": lambda size: HEAD + "workflow:\n" + "".join(_step(n, f"    next: s{n - 1}\n" if n else "") for n in range(size // 50, -1, -1)),
    "long cycle": lambda size: HEAD + "workflow:\n" + "".join(_step(n, f"    next: s{(n + 1) % (size // 50)}\n") for n in range(size // 50)),
    "many cycles": steps(lambda n: _step(n, f"    next: [s{n}, s{n + 1}]\n")),
    "pairs of cycles": steps(lambda n: _step(n, f"    next: [s{n ^ 1}, s{n + 1}]\n")),
    "cycle with conditions": lambda size: HEAD + "workflow:\n" + "".join(
        _step(n, f"    next: [{{step: s{(n + 1) % (size // 90)}, when: '{{{{ ctx.k }}}}'}}]\n") for n in range(size // 90)
    ),
    "forks and joins": steps(_forks_and_joins),
    "wide fork": _wide_fork,
    "star": steps(lambda n: _step(n, "    next: s0\n")),
    "no arcs": steps(_step),
    "many joins": steps(lambda n: _step(n, f"    spec: {{join: all}}\n    next: [s{n + 1}, s{n + 2}, s{n + 3}]\n")),
    "large joins": steps(lambda n: _step(n, "    spec: {join: 1000000}\n    next: s1\n")),
    "gates": steps(_gates),
    "gates on results": steps(lambda n: _step(n, f"    spec: {{policy: {{admit: {{rules: [{{when: \"{{{{ done('s{n + 1}') }}}}\", then: {{allow: true}}}}]}}}}}}\n    next: s{n + 1}\n")),
    "gates with many rules": one_step(
        lambda n: f"{{when: '{{{{ ctx.k{n} }}}}', then: {{allow: false}}}}, ",
        f"    tool: {NOOP}\n    spec: {{policy: {{admit: {{rules: [", "]}}}\n",
    ),
    "compensations": steps(_compensations, "policy: {rollback: on_fail}\n"),
    "loops": steps(lambda n: _step(n, f"    loop: {{in: [1], iterator: i{n}, spec: {{mode: parallel}}}}\n    set: {{ctx.k: '{{{{ s{n} }}}}'}}\n    next: s{n + 1}\n")),
    "parallel writes": steps(lambda n: _step(n, f"    set: {{ctx.k{n % 7}: 1}}\n    next: {{spec: {{mode: inclusive}}, arcs: [{{step: s{n + 1}}}, {{step: s{n + 2}}}]}}\n")),
    "many arcs of one step": one_step(lambda n: f"      - {{step: a, when: \"{{{{ outcome.status == 'ok' and ctx.k{n} }}}}\"}}\n", f"    tool: {NOOP}\n    next:\n"),
    "many sure arcs of one step": one_step(lambda n: "      - {step: a}\n", f"    tool: {NOOP}\n    next:\n"),
    "many policy rules": one_step(
        lambda n: f"{{when: \"{{{{ outcome.status == 'error' }}}}\", then: {{do: retry, attempts: {n + 1}}}}}, ",
        "    tool: {kind: noop, spec: {policy: {rules: [", "]}}}\n",
    ),
    "many jumps": one_step(
        lambda n: f"      - {{kind: noop, name: t{n}, spec: {{policy: {{rules: [{{else: {{do: jump, to: t{n // 2}}}}}]}}}}}}\n", "    tool:\n",
    ),
    # quantities
    "many tasks": one_step(lambda n: f"      - {{kind: noop, name: t{n}}}\n", "    tool:\n"),
    "many tasks that read each other": one_step(lambda n: f"      - {{kind: noop, name: t{n}, message: '{{{{ t{n + 1} }}}}{{{{ _prev }}}}'}}\n", "    tool:\n"),
    "many inputs": one_step(lambda n: f"      k{n}: '{{{{ input.k{n + 1} }}}}'\n", f"    tool: {NOOP}\n    input:\n"),
    "many inputs of a task": one_step(lambda n: f"        k{n}: '{{{{ input.k{n + 1} }}}}'\n", "    tool:\n      kind: noop\n      input:\n"),
    "many writes": one_step(lambda n: f"      ctx.k{n}: '{{{{ ctx.k{n + 1} }}}}'\n", f"    tool: {NOOP}\n    set:\n"),
    "many wrong writes": one_step(lambda n: f"      k{n}: 1\n", f"    tool: {NOOP}\n    set:\n"),
    "many templates": steps(lambda n: _step(n, tool=f"{{kind: noop, message: '{_reads(n)}'}}")),
    "many inputs of many steps": steps(lambda n: _step(n, f"    input: {{{', '.join(f'k{k}: {n}' for k in range(20))}}}\n", f"{{kind: noop, message: '{{{{ k{n % 20} }}}}'}}")),
    "many workload keys": lambda size: filled(size, lambda n: f"  k{n}: '{{{{ now() }}}}'\n", f"{HEAD}workload:\n", f"workflow:\n  - step: a\n    tool: {NOOP}\n"),
    "many workload reads": lambda size: filled(
        size, lambda n: f"{{{{ workload.k{n} }}}}",
        filled(size // 2, lambda n: f"  k{n}: 1\n", f"{HEAD}workload:\n") + "workflow:\n  - step: a\n    tool: {kind: noop, message: '", "'}\n",
    ),
    "many credentials": lambda size: filled(size, lambda n: f"  - {{name: c{n}, kind: bearer, token: '{{{{ keychain.c{n + 1} }}}}'}}\n", f"{HEAD}keychain:\n", f"workflow:\n  - step: a\n    tool: {NOOP}\n"),
    "many workbook tasks": lambda size: filled(size, lambda n: f"  - {{name: t{n}, kind: workbook, task: t{n + 1}}}\n", f"{HEAD}workbook:\n", "workflow:\n  - step: a\n    tool: {kind: workbook, task: t0}\n"),
    "many workbook calls": steps(lambda n: _step(n, tool=f"{{kind: workbook, task: t, input: {{k{n}: 1}}}}"), "workbook: [{name: t, kind: noop, message: '{{ args.k }}'}]\n"),
    "many kinds": steps(lambda n: _step(n, tool=("{kind: http, url: http://x}", "{kind: python, code: 'result = 1'}", "{kind: shell, cmds: [ls]}", "{kind: postgres, query: SELECT 1, auth: a}", "{kind: sleep, seconds: 1}")[n % 5])),
    "many tags": lambda size: filled(size, lambda n: f"t{n}, ", f"{HEAD[:-2]}, tags: [", f"]}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n"),
    "many children": steps(lambda n: _step(n, tool=f"{{kind: playbook, path: child/{n}}}")),
    "many secrets": steps(lambda n: _step(n, tool=f"{{kind: http, url: http://x, headers: {{Authorization: 'Bearer abcdefghijklmnop{n}'}}}}")),
    "many documents": lambda size: filled(size, lambda n: "---\na: 1\n", HEAD),
    "many empty documents": lambda size: HEAD + "---\n" * (size // 4),
    # values
    "many small values": lambda size: f"{HEAD}workload: {{a: [{'1,' * (size // 2)}]}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n",
    "many empty maps": lambda size: f"{HEAD}workload: {{a: [{'{},' * (size // 3)}]}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n",
    "many words": lambda size: f"{HEAD}workload: {{{'a b, ' * (size // 5)}}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n",
    "many different words": lambda size: filled(size, lambda n: f"w{n}, ", f"{HEAD}workload: {{", f"}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n"),
    "many old booleans": lambda size: f"{HEAD}workload: {{a: [{'yes, ' * (size // 5)}]}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n",
    "many long numbers": lambda size: filled(size, lambda n: f"{'1' * 600}, ", f"{HEAD}workload: {{a: [", f"]}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n"),
    "many big numbers": lambda size: filled(size, lambda n: f"{'9' * 400}, ", f"{HEAD}workload: {{a: [", f"]}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n"),
    "many big floats": lambda size: filled(size, lambda n: "1e308, -.inf, .nan, 1e-320, ", f"{HEAD}workload: {{a: [", f"]}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n"),
    "big settings": steps(lambda n: _step(n, f"    spec: {{timeout_s: {'9' * 400}, join: 1e400}}\n")),
    "huge scalar": lambda size: f"{HEAD}workload: {{a: {'x' * size}}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n",
    "huge quoted scalar": lambda size: f"{HEAD}workload: {{a: \"{'x' * size}\"}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n",
    "huge block scalar": lambda size: f"{HEAD}workload:\n  a: |\n" + "    x\n" * (size // 6) + f"workflow:\n  - step: a\n    tool: {NOOP}\n",
    "huge folded scalar": lambda size: f"{HEAD}workload:\n  a: >\n" + "    x\n\n" * (size // 7) + f"workflow:\n  - step: a\n    tool: {NOOP}\n",
    "huge name": lambda size: f"{HEAD}workflow:\n  - step: {'n' * size}\n    tool: {NOOP}\n",
    "huge arc": lambda size: f"{HEAD}workflow:\n  - step: a\n    tool: {NOOP}\n    next: {'n' * size}\n",
    "huge names": lambda size: HEAD + "workflow:\n" + "".join(f"  - step: {str(n) * (size // 50)}\n    tool: {NOOP}\n    next: {str(n + 1) * (size // 50)}x\n" for n in range(10, 30)),
    "long keys": lambda size: filled(size, lambda n: f"  {'k' * 900}{n}: 1\n", f"{HEAD}workload:\n", f"workflow:\n  - step: a\n    tool: {NOOP}\n"),
    "long unknown keys": lines(lambda n: f"{'k' * 900}{n}: 1\n"),
    "long explicit key": _long_key_with_many_children,
    "long path": lambda size: f"{HEAD}workload:\n" + "".join("  " * (n + 1) + f"? {'k' * (size // 100)}\n" + "  " * (n + 1) + ":\n" for n in range(90)),
    "one long line": lambda size: f"{HEAD}workflow: [{{step: a, tool: {NOOP}}}, " + ", ".join(f"{{step: s{n}, tool: {NOOP}, next: x{n}}}" for n in range(size // 45)) + "]\n",
    "one long line of broken templates": _template(lambda size: "{{ a " * (size // 5)),
    "comments": lambda size: f"{HEAD}" + "# comment\n" * (size // 10) + f"workflow:\n  - step: a\n    tool: {NOOP}\n",
    "one long comment": lambda size: f"{HEAD}# {'c' * size}\nworkflow:\n  - step: a\n    tool: {NOOP}\n",
    "empty lines": lambda size: f"{HEAD}" + "\n" * size + f"workflow:\n  - step: a\n    tool: {NOOP}\n",
    "spaces": lambda size: f"{HEAD}" + " " * size + f"\nworkflow:\n  - step: a\n    tool: {NOOP}\n",
    "odd letters": lambda size: filled(size, lambda n: f"  ключ{n}: '\U0001f600 ﷺ é{n}'\n", f"{HEAD}workload:\n", f"workflow:\n  - step: a\n    tool: {NOOP}\n"),
    "odd names": steps(lambda n: f"  - step: Ω{n}İßﬃ\n    tool: {NOOP}\n    next: ω{n}i̇ssffi\n"),
    "carriage returns": lambda size: steps(lambda n: _step(n, f"    next: x{n}\n"))(size).replace("\n", "\r\n"),
    "line separators": lambda size: f"{HEAD}workload: {{a: '{chr(0x2028) * (size // 3)}'}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n",
    # nesting, aliases and tags
    "deep lists": _nested("[", "]"),
    "deep maps": _nested("{a: ", "}"),
    "deep block lists": lambda size: f"{HEAD}workload:\n  a:\n    " + "- " * (size // 2) + "1\n",
    "deep block maps": lambda size: f"{HEAD}workload:\n" + "".join(" " * n + "a:\n" for n in range(1, int((2 * size) ** 0.5))),
    "many deep values": _deep_groups,
    "billion laughs": _laughs,
    "many laughs": _small_laughs,
    "aliased steps": _aliased_steps,
    "aliased name": _repeated_name,
    "merge keys": _merges,
    "many anchors": lambda size: filled(size, lambda n: f"  k{n}: &k{n} {{a: 1}}\n", f"{HEAD}workload:\n", f"workflow:\n  - step: a\n    tool: {NOOP}\n"),
    "many aliases": lambda size: filled(size, lambda n: "*a, ", f"{HEAD}workload: {{a: &a 1, b: [", f"]}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n"),
    "many unknown aliases": lambda size: filled(size, lambda n: f"*a{n}, ", f"{HEAD}workload: {{b: [", f"]}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n"),
    "many tags of values": lambda size: filled(size, lambda n: f"!t{n} 1, ", f"{HEAD}workload: {{b: [", f"]}}\nworkflow:\n  - step: a\n    tool: {NOOP}\n"),
    "tag directives": lambda size: "%TAG !a! x\n" * (size // 11) + "---\n" + HEAD,
    "many keys of maps": lines(lambda n: f"? {{a: {n}}}\n: 1\n"),
    "unquoted templates": one_step(lambda n: "{{ x }}, ", "    tool: {kind: noop, message: [", "]}\n"),
    "unclosed brackets": lambda size: HEAD + "workload: " + "[a, " * 50 + "b, " * (size // 3),
    "unclosed quote": lambda size: f"{HEAD}workload: '" + "x\n" * (size // 2),
    "tabs": lambda size: HEAD + "\tworkload: 1\n" * (size // 13),
    "bad indentation": lambda size: HEAD + "".join(" " * (n % 7) + f"k{n}: 1\n" for n in range(size // 12)),
    "JSON": lambda size: json.dumps({
        "apiVersion": "noetl.io/v10", "kind": "Playbook", "metadata": {"name": "j", "path": "j"},
        "workflow": [{"step": f"s{n}", "tool": {"kind": "noop"}, "next": f"x{n}"} for n in range(size // 60)],
    }),
    "JSON with escapes": lambda size: json.dumps({"workload": {f"k{n}": "\U0001f600" * 3 for n in range(size // 50)}}, indent="\t"),
    "broken JSON": lambda size: json.dumps({"workload": {f"k{n}": "\U0001f600" * 3 for n in range(size // 50)}}, indent="\t")[:-3],
    # templates and code
    "one long expression": _template(lambda size: "{{ " + " + ".join(["1"] * (size // 4)) + " }}"),
    "one long condition": lambda size: HEAD + "workflow:\n  - step: a\n    tool: {kind: noop}\n    next: [{step: a, when: \"{{ " + " or ".join(f"event.name == 'e{n}'" for n in range(size // 24)) + " }}\"}]\n",
    "deep parentheses": _template(lambda size: "{{ " + "(" * (size // 2) + "1" + ")" * (size // 2) + " }}"),
    "deep negation": _template(lambda size: "{{ " + "not " * (size // 4) + "1 }}"),
    "deep attributes": _template(lambda size: "{{ ctx" + ".a" * (size // 2) + " }}"),
    "deep lists in a template": _template(lambda size: "{{ " + "[" * (size // 2) + "]" * (size // 2) + " }}"),
    "deep ifs": _template(lambda size: "{% if a %}" * (size // 20) + "{% endif %}" * (size // 20)),
    "many ifs": _template(lambda size: "{% if a %}b{% endif %}" * (size // 22)),
    "many loops of a template": _template(lambda size: filled(size, lambda n: f"{{% for i{n} in x %}}{{{{ i{n} }}}}{{% endfor %}}")),
    "many variables of a template": _template(lambda size: filled(size, lambda n: f"{{% set v{n} = v{n - 1} %}}")),
    "many filters": _template(lambda size: "{{ 1" + " | string" * (size // 9) + " }}"),
    "many arguments": _template(lambda size: "{{ dict(" + ", ".join(f"a{n}=1" for n in range(size // 7)) + ") }}"),
    "many braces": _template(lambda size: "{ { } } " * (size // 8)),
    "many stray braces": _template(lambda size: "}} " * (size // 3)),
    "many dollars": _template(lambda size: "${{ a }}" * (size // 8)),
    "many comments of a template": _template(lambda size: "{# c #}" * (size // 7)),
    "long text of a template": _template(lambda size: "x" * size + "{{ unknown }}"),
    "long string of a template": _template(lambda size: "{{ '" + "x" * size + "' }}"),
    "big number of a template": _template(lambda size: "{{ " + "9" * size + " }}"),
    "powers of a template": _template(lambda size: "{{ 9 ** 9 ** 9 ** 9 }}" + "{{ 'a' * 10 ** 10 }}" * (size // 22)),
    "constant work of a condition": lambda size: HEAD + "workflow:\n  - step: a\n    tool: {kind: noop}\n    next: [{step: a, when: '{{ range(10 ** 9) | list | length > 9 ** 9 ** 9 }}'}]\n" + "#" * (size // 2),
    "long python": _code(lambda size: "x = 1\n" * (size // 6)),
    "deep python": _code(lambda size: "(" * (size // 2) + ")" * (size // 2)),
    "deep blocks of python": _code(lambda size: "".join(" " * n + "if x:\n" for n in range(int((2 * size) ** 0.5)))),
    "many broken snippets": steps(lambda n: _step(n, tool="{kind: python, code: 'def ('}")),
    "templates in python": _code(lambda size: filled(size, lambda n: f"a{n} = '{{{{ ctx.a{n} }}}}'\n")),
    "long sql": _code(lambda size: "SELECT 1;\n" * (size // 10), "postgres", "query"),
    "many values in sql": _code(lambda size: "SELECT " + "'{{ ctx.a }}', " * (size // 15) + "1", "postgres", "query"),
    "open quotes in sql": _code(lambda size: "SELECT $a$ '" * (size // 12), "postgres", "query"),
    "transactions": _code(lambda size: "BEGIN; COMMIT;\n" * (size // 15), "postgres", "query"),
    "long shell": _code(lambda size: "echo {{ ctx.a }} '\n" * (size // 18), "shell", "cmd"),
    "old spellings": steps(lambda n: f"  - step: s{n}\n    type: http\n    url: http://x\n    next: [{{then: [s{n + 1}]}}]\n    case: [{{when: a, then: b}}]\n"),
    "old keys": steps(lambda n: _step(n, f"    vars: {{a{n}: 1}}\n    retry: {{max: 3}}\n    if: x\n")),
    "misplaced keys": steps(lambda n: _step(n, "    url: http://x\n    method: GET\n    when: x\n    mode: parallel\n")),
    "wrong types": steps(lambda n: "  - step: [1]\n    tool: 3\n    next: {arcs: 1}\n    loop: x\n"),
    "missing fields": steps(lambda n: "  - {}\n"),
    # schemas
    "many properties": schema(lambda size: {"properties": {f"p{n}": {"type": "string"} for n in range(size // 28)}}),
    "nested allOf": schema(_nested_schema("allOf", 2)),
    "nested anyOf": schema(_nested_schema("anyOf", 2)),
    "nested not": schema(_nested_schema("not", 1)),
    "ladder of refs": schema(_ladder_of_refs),
    "endless ref": schema(lambda size: {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "title": "x" * size}),
    "ref to itself": schema(lambda size: {"properties": {"a": {"$ref": "#"}}, "title": "x" * size}),
    "dynamic refs": schema(lambda size: {"$dynamicAnchor": "n", "properties": {f"a{n}": {"$dynamicRef": "#n"} for n in range(size // 33)}}),
    "refs to a file": schema(lambda size: {"properties": {f"a{n}": {"$ref": "file:///etc/passwd"} for n in range(size // 40)}}),
    "refs to a host": schema(lambda size: {"properties": {f"a{n}": {"$ref": f"http://127.0.0.1:1/{n}"} for n in range(size // 42)}}),
    "patterns": schema(lambda size: {"properties": {f"a{n}": {"pattern": "^(a+)+$"} for n in range(size // 33)}}),
    "long pattern": schema(lambda size: {"pattern": "(a|" * (size // 4) + ")" * (size // 4)}),
    "large repetition": schema(lambda size: {"properties": {f"a{n}": {"pattern": "(((a{1000}){1000}){1000})"} for n in range(size // 50)}}),
    "pattern properties": schema(lambda size: {"patternProperties": {f"^(a+)+{n}$": {} for n in range(size // 18)}}),
    "wide enum": schema(lambda size: {"enum": list(range(size // 7))}),
    "schemas of any depth": schema(lambda size: {"properties": {f"a{n}": {"items": {"items": {"items": {"uniqueItems": True}}}} for n in range(size // 65)}}),
}  # fmt: skip


def of_rules() -> dict[str, Make]:
    """Documents that repeat the bad example of each rule."""
    found = {}
    for rule in RULES:
        data = plain(parse(rule.bad).root)
        if isinstance(data, dict) and isinstance(data.get("workflow"), list) and rule.group != "reading":
            found[f"{rule.code} {rule.name}"] = _repeated(data)
    return found


def _repeated(data: dict[str, Any]) -> Make:
    workflow = data["workflow"]
    text = json.dumps(workflow, ensure_ascii=False)[1:-1]
    names = [str(step["step"]) for step in workflow if isinstance(step, dict) and "step" in step]
    name = re.compile(rf"(?<![\w.])({'|'.join(map(re.escape, names))})(?!\w)") if names else re.compile("(?!)")
    rest = json.dumps({key: value for key, value in data.items() if key != "workflow"}, ensure_ascii=False)[:-1]
    head = f'{rest}{", " if len(rest) > 1 else ""}"workflow": [{text}'
    return lambda size: filled(size, lambda n: ",\n" + name.sub(rf"\1_{n}", text), head, "]}\n")


ALL: dict[str, Make] = {**DOCUMENTS, **of_rules()}
