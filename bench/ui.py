"""Measure the web UI in Chromium, and print the numbers against their budgets.

    python bench/ui.py [--only NAME]... [--rows 1000000] [--items 100000] [--runs 50000] [--rounds 5] [--save]
    python bench/ui.py --only heap --minutes 30 --save

A real server on SQLite, and one on PostgreSQL whose executions are put in by SQL. Each measure opens pages as a person does;
times are those of the browser. `--save` writes bench/results/ui.json, where numbers that were not measured stay. Tested in tests/bench/test_ui.py.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import msgspec
import psycopg
from playwright.sync_api import Browser, CDPSession, Error, Page

from bench.screen import BUDGETS, PATH, Measured, table
from bench.system import Client
from noetl.client.local_server import local_server
from tests.acceptance.run import noetl
from tests.server.serving import process
from tests.services import postgres
from tests.ui.browsing import chromium, lacks, visiting

HEAD = "apiVersion: noetl.io/v10\nkind: Playbook\nmetadata: { name: NAME, path: bench/NAME }\n"
ROUNDS = 5
RUNS = 50_000
MEASURES = ("first_paint", "steps", "scrub", "live", "heat", "timeline", "heap", "list")
# Notes, from the start of a page, when something was on the screen for the first time.
APPEARS = """selector => {
    const seen = () => {
        if (window.appeared || !document.querySelector(selector)) return;
        requestAnimationFrame(() => setTimeout(() => { window.appeared ??= performance.now() }));
    };
    new MutationObserver(seen).observe(document, {childList: true, subtree: true, attributes: true});
}"""


def chain(name: str, steps: int, rounds: int = 1) -> str:
    """Return a playbook of steps in a row, which goes round several times."""
    lines = [HEAD.replace("NAME", name), "workload: { rounds: 1 }\n", "workflow:\n"]
    lines += [f"  - step: s{at}\n    tool: {{ kind: noop }}\n    next: s{at + 1}\n" for at in range(steps - 1)]
    count = "{{ ctx.rounds | default(0) + 1 }}"
    more = f"{{{{ ctx.rounds < {rounds} }}}}"
    lines.append(f"  - step: s{steps - 1}\n    tool: {{ kind: noop }}\n    set: {{ ctx.rounds: '{count}' }}\n")
    lines.append(f"    next:\n      arcs:\n        - step: s0\n          when: '{more}'\n" if rounds > 1 else "")
    return "".join(lines)


def naps(name: str, count: int) -> str:
    """Return a playbook whose steps end one by one."""
    steps = (
        f"  - step: n{at}\n    tool: {{ kind: sleep, seconds: 1 }}\n"
        + (f"    next: n{at + 1}\n" if at < count - 1 else "")
        for at in range(count)
    )
    return HEAD.replace("NAME", name) + "workflow:\n" + "".join(steps)


def loop(name: str, items: int) -> str:
    """Return a playbook with one loop over many items."""
    return HEAD.replace("NAME", name) + (
        f"workflow:\n  - step: each\n    loop: {{ in: '{{{{ range({items}) | list }}}}', iterator: n, "
        "spec: { mode: parallel, max_in_flight: 64 } }\n    tool: { kind: noop }\n"
    )


class Ui:
    """A browser, a server and its client."""

    def __init__(self, browser: Browser, url: str, rounds: int = ROUNDS) -> None:
        self.browser, self.url, self.rounds = browser, url, rounds
        self.client = Client(url)
        self.token = local_server(url).token or ""

    def close(self) -> None:
        self.client.connection.close()

    def run(self, content: str) -> str:
        """Run a playbook to its end; gives the id of the execution."""
        started = self.client.start(self.client.register(content))
        while self.client.ask("GET", f"/api/executions/{started}")["status"] not in ("completed", "failed", "partial"):
            time.sleep(0.2)
        return started

    @contextmanager
    def page(self) -> Iterator[Page]:
        """Yield a page of a browser with an empty cache, signed in."""
        with visiting(self.browser, self.url, self.token) as visitor:
            visitor.page.wait_for_selector("#content")
            yield visitor.page

    def appears(self, path: str, selector: str, at_most: int = ROUNDS) -> float:
        """Return the median time from opening an address to seeing a thing on it."""
        found = []
        for _ in range(min(self.rounds, at_most)):
            with self.page() as page:
                page.add_init_script(f"({APPEARS})({json.dumps(selector)})")
                page.goto(self.url + path)
                found.append(float(true(page, "window.appeared")))
        return statistics.median(found)


def true(page: Page, expression: str) -> Any:
    """Return the value of an expression when it is true.

    The page's policy forbids the driver's own way to wait.
    """
    until = time.monotonic() + 60
    while not (value := page.evaluate(expression)):
        assert time.monotonic() < until, f"{expression} did not become true"
        page.wait_for_timeout(20)
    return value


def p95(values: Sequence[float]) -> float:
    return sorted(values)[max(0, round(0.95 * len(values)) - 1)]


def first_paint(ui: Ui) -> dict[str, float]:
    """Measure the first paint and the script bytes of the first screen."""
    paints, bytes_ = [], []
    for _ in range(ui.rounds):
        with ui.page() as page:
            page.context.new_cdp_session(page).send("Network.clearBrowserCache")
            page.goto(f"{ui.url}/executions")
            paints.append(float(true(page, "performance.getEntriesByName('first-contentful-paint')[0]?.startTime")))
            sizes = "performance.getEntriesByType('resource').filter(one => one.name.endsWith('.js')).map(one => one.encodedBodySize)"
            bytes_.append(sum(page.evaluate(sizes)) / 1_000)
    return {"first_paint": statistics.median(paints), "script": max(bytes_)}


SCRUB = """() => new Promise(done => {
    const slider = document.querySelector('input[type=range][aria-label=Moment]'), most = Number(slider.max);
    const set = Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set;
    let frames = 0, from = 0;
    const step = now => {
        from ||= now;
        if (now - from > 3000) return done(frames / (now - from) * 1000);
        frames += 1;
        set.call(slider, String(1 + Math.round(most * (0.5 - 0.5 * Math.cos((now - from) / 3000 * Math.PI * 2)))));
        slider.dispatchEvent(new Event('input', {bubbles: true}));
        requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
})"""
KEYS = """() => { window.pressed = []; addEventListener('keydown', event => {
    const at = event.timeStamp;
    requestAnimationFrame(() => { const wait = new MessageChannel();
        wait.port1.onmessage = () => window.pressed.push(performance.now() - at); wait.port2.postMessage(0) });
}, true) }"""


def long_history(ui: Ui) -> dict[str, float]:
    """Measure scrubbing and keys on an execution of ten thousand events."""
    done = ui.run(chain("history", 50, 34))
    with ui.page() as page:
        page.goto(f"{ui.url}/executions/{done}?at=5")
        page.wait_for_selector("[data-step=s0]")
        head = int(page.get_by_role("slider", name="Moment").get_attribute("max") or 0)
        page.wait_for_timeout(1_000)
        frames = float(page.evaluate(SCRUB))
        page.wait_for_timeout(500)
        page.evaluate(KEYS)
        for _ in range(40):
            page.keyboard.press(".")
            page.wait_for_timeout(60)
        return {"scrub": frames, "key": p95(page.evaluate("window.pressed")), "events": head}


def steps(ui: Ui) -> dict[str, float]:
    """Measure the page of an execution with 500 steps."""
    done = ui.run(chain("five_hundred", 500))
    return {"steps": ui.appears(f"/executions/{done}", "[data-step][data-state=done]")}


WATCH = """() => { window.turned = {}; const look = () => requestAnimationFrame(() => { for (const one of
    document.querySelectorAll('[data-step][data-state=done]')) window.turned[one.dataset.step] ??= Date.now() });
    new MutationObserver(look).observe(document, {subtree: true, attributes: true, childList: true}) }"""


def live(ui: Ui) -> dict[str, float]:
    """Measure from the time of an event in the log to the frame that shows it."""
    path = ui.client.register(naps("naps", 6))
    with ui.page() as page:
        page.add_init_script(f"({WATCH})()")
        started = ui.client.start(path)
        page.goto(f"{ui.url}/executions/{started}")
        page.wait_for_selector("[data-step=n0]")
        opened = time.time() * 1_000
        page.wait_for_selector("[data-step=n5][data-state=done]", timeout=60_000)
        page.wait_for_timeout(100)
        turned = page.evaluate("window.turned")
    events = ui.client.ask("GET", f"/api/executions/{started}/events?type=step.done&limit=1000")["events"]
    return {"live": p95([turned[one["step"]] - one["timestamp"] for one in events if one["timestamp"] > opened])}


def heat(ui: Ui, items: int) -> dict[str, float]:
    """Measure the heat map of a loop with many items."""
    done = ui.run(loop("many", items))
    return {"heat": ui.appears(f"/executions/{done}?step=each&pane=items", "canvas[data-cells]", 3)}


def timeline(ui: Ui, runs: int) -> dict[str, float]:
    """Measure the timeline of very many step-runs: a cycle of 50 steps."""
    done = ui.run(chain("cycles", 50, runs // 50))
    return {"timeline": ui.appears(f"/executions/{done}", "[data-lane] path")}


def naps_of(name: str, items: int) -> str:
    """Return a playbook with a long loop: eight items at a time, a second each."""
    return HEAD.replace("NAME", name) + (
        f"workflow:\n  - step: each\n    loop: {{ in: '{{{{ range({items}) | list }}}}', iterator: n, "
        "spec: { mode: parallel, max_in_flight: 8 } }\n    tool: { kind: sleep, seconds: 1 }\n"
    )


def heap_of(page: Page, session: CDPSession) -> float:
    """Return the megabytes of a page's objects after a garbage collection."""
    page.wait_for_timeout(500)
    session.send("HeapProfiler.collectGarbage")
    return float(session.send("Runtime.getHeapUsage")["usedSize"]) / 1e6


def growth(series: Sequence[float]) -> float:
    """Return the median of the last third less that of the first third."""
    third = max(1, (len(series) - 1) // 3)
    return statistics.median(series[-third:]) - statistics.median(series[1 : 1 + third])


def heap(ui: Ui, minutes: float) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Measure the heap of two pages that stay open: a live list, and a loop that runs.

    An execution starts every other second; the list takes in the new ones once a minute.
    """
    short = ui.client.register(chain("short", 3))
    busy = ui.client.start(ui.client.register(naps_of("live_loop", 20_000)))
    series: dict[str, list[float]] = {"list": [], "loop": []}
    with ui.page() as listed_page, ui.page() as loop_page:
        listed_page.goto(f"{ui.url}/executions")
        listed_page.wait_for_selector("[role=row] a")
        loop_page.goto(f"{ui.url}/executions/{busy}?step=each&pane=items")
        loop_page.wait_for_selector("canvas[data-cells]")
        opened = {"list": listed_page, "loop": loop_page}
        sessions = {name: page.context.new_cdp_session(page) for name, page in opened.items()}
        until = time.monotonic() + minutes * 60
        while True:
            for name, page in opened.items():
                series[name].append(round(heap_of(page, sessions[name]), 2))
            print({name: values[-1] for name, values in series.items()}, flush=True)
            if time.monotonic() >= until:
                break
            rest = min(until, time.monotonic() + 60)
            while time.monotonic() < rest:
                ui.client.start(short)
                listed_page.wait_for_timeout(2_000)
            if (new := listed_page.get_by_role("button", name="new")).count():
                new.click()
        for page in opened.values():
            assert page.get_by_text("live", exact=True).count(), "the page is not live any more"
    ui.client.ask("POST", f"/api/executions/{busy}/cancel", {})
    parts = {
        f"heap of the {name}, by minute": {str(at): value for at, value in enumerate(values)}
        for name, values in series.items()
    }
    return {"heap": max(map(max, series.values())), "growth": max(map(growth, series.values()))}, parts


FILL = """
INSERT INTO noetl.execution (execution_id, last_seq, status, path, tags, started_at, ended_at, error, projection)
SELECT e.execution_id - 1 - n, e.last_seq, s.status, s.path, s.tags, e.started_at - n * 1000, e.ended_at - n * 1000, s.error,
       jsonb_build_object('status', s.status, 'path', s.path, 'playbook', e.projection ->> 'playbook', 'started_at',
                          e.started_at - n * 1000, 'needs_signal', false, 'ended_at', e.ended_at - n * 1000, 'result', null,
                          'error', CASE WHEN s.error IS NULL THEN NULL ELSE json_build_object('message', s.error) END,
                          'steps', e.projection -> 'steps', 'compensated', null)::json
FROM generate_series(1, %s) AS n CROSS JOIN (SELECT * FROM noetl.execution LIMIT 1) AS e CROSS JOIN LATERAL (
  SELECT CASE WHEN n %% 20 = 0 THEN 'failed' WHEN n %% 5000 = 7 THEN 'cancelled' ELSE 'completed' END AS status,
         'team' || n %% 40 || '/job' || n %% 400 AS path,
         CASE WHEN n %% 3 = 0 THEN ARRAY['nightly'] WHEN n %% 100000 = 5 THEN ARRAY['rare'] ELSE '{}'::text[] END AS tags,
         CASE WHEN n %% 20 = 0 THEN 'HTTP 422 unknown sku ' || n END AS error) AS s
ORDER BY n DESC
"""
FILTERS: Final = {
    "first page": "",
    "failed": "status=failed",
    "cancelled": "status=cancelled",
    "running": "status=running",
    "path": "path=team7/job7",
    "paths": "path=team7/*",
    "path and status": "path=team7/*&status=failed",
    "tag": "tag=nightly",
    "rare tag": "tag=rare",
    "since": "since={hour}",
    "until": "until={week}",
    "needs a signal": "needs_signal=true",
    "words": "search=unknown%20sku",
    "words that none has": "search=nowhere",
}
ASK = """async path => { const from = performance.now(); const answer = await fetch(path); const body = await answer.json();
    return [performance.now() - from, answer.status, body.next ?? null] }"""


def listed(browser: Browser, rows: int, rounds: int) -> dict[str, float]:
    """Measure each filter of a long list, and the next page, as the browser waits."""
    parts: dict[str, float] = {}
    with postgres() as address, tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        noetl("db", "init", "--db", address, cwd=folder)
        environment = {"NOETL_DB_URL": address}
        with (
            process(folder, "up", auth="auto", environment=environment) as (url, _up),
            closing(Ui(browser, url, rounds)) as ui,
        ):
            ui.run(chain("one", 2))
            with psycopg.connect(address, autocommit=True) as database:
                database.execute(FILL, (rows,))
                database.execute("ANALYZE noetl.execution")
            now = time.time() * 1_000
            with ui.page() as page:
                for name, query in FILTERS.items():
                    asked = query.format(hour=round(now - 3_600_000), week=round(now - 7 * 86_400_000))
                    path = f"/api/executions?limit=100&{asked}"
                    parts[name], cursor = _asked(page, path)
                    if cursor is not None:
                        parts[f"{name}, next page"], _ = _asked(page, f"{path}&cursor={cursor}")
            parts["screen"] = ui.appears("/executions", "[role=row] a", 3)
    return parts


def _asked(page: Page, path: str) -> tuple[float, str | None]:
    """Return the median time of a request in the browser, and the next page's cursor."""
    found = [page.evaluate(ASK, path) for _ in range(3)]
    assert all(status == 200 for _took, status, _next in found), (path, found)
    return statistics.median(took for took, _status, _next in found), found[0][2]


def measure(only: Sequence[str], rows: int, items: int, rounds: int, minutes: float = 30, runs: int = RUNS) -> Measured:
    """Take every measure, or only some; one that cannot be taken says why."""
    made = Measured(datetime.datetime.now(datetime.UTC).date().isoformat(), round(os.getloadavg()[0], 1))

    def take(name: str, does: Callable[[], dict[str, float]]) -> None:
        if only and name not in only:
            return
        try:
            found = does()
        except (AssertionError, Error, psycopg.Error) as error:
            made.missing[name] = str(error).partition("\n")[0]
            return
        rounded = {key: round(value, 1) for key, value in found.items()}
        if name == "list":
            made.parts["list"] = rounded
            rounded = {"list": max(value for key, value in rounded.items() if key != "screen")}
        made.numbers |= {key: value for key, value in rounded.items() if key in BUDGETS}

    def heaps(ui: Ui) -> dict[str, float]:
        numbers, parts = heap(ui, minutes)
        made.parts |= parts
        return numbers

    with tempfile.TemporaryDirectory() as place, chromium() as browser:
        with process(Path(place), "up", auth="auto") as (url, _up), closing(Ui(browser, url, rounds)) as ui:
            take("first_paint", lambda: first_paint(ui))
            take("steps", lambda: steps(ui))
            take("scrub", lambda: long_history(ui))
            take("live", lambda: live(ui))
            take("heat", lambda: heat(ui, items))
            take("timeline", lambda: timeline(ui, runs))
            if "heap" in only:  # it takes half an hour
                take("heap", lambda: heaps(ui))
        take("list", lambda: listed(browser, rows, rounds))
    return made


def main(arguments: Sequence[str] | None = None) -> Measured:
    """Measure, print, and save if asked."""
    parser = argparse.ArgumentParser(description="Measure the web UI in Chromium.")
    parser.add_argument("--only", action="append", default=[], choices=MEASURES)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=RUNS, help="Step-runs of the timeline.")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="Browsers per measure, each with an empty cache.")
    parser.add_argument("--minutes", type=float, default=30, help="How long the pages of `heap` stay open.")
    parser.add_argument("--save", action="store_true")
    given = parser.parse_args(arguments)
    if lacks():
        sys.exit(lacks())
    made = measure(given.only, given.rows, given.items, given.rounds, given.minutes, given.runs)
    print(table(made))
    for name, value in made.parts.get("list", {}).items():
        print(f"  {name}: {value:.0f} ms")
    for name, value in made.numbers.items():
        if not BUDGETS[name].holds(value):
            print(f"over its budget: {BUDGETS[name].words}: {value}")
    if given.save:
        PATH.write_bytes(msgspec.json.format(msgspec.json.encode(made.over(Measured.kept())), indent=2) + b"\n")
    return made


if __name__ == "__main__":
    main()
