"""Tracks and moments over HTTP: parts, streams, caching, masks and bounds."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from noetl.engine.queries.moment import project
from noetl.engine.queries.track import JOIN_BASE, build
from noetl.engine.state.evolve import fold
from noetl.engine.state.execution import checksum
from noetl.server.api.executions import moments
from tests.server.serving import FAILS, TWO, WAITS, Served, in_process, listening, playbook

pytestmark = pytest.mark.asyncio
FOR_EVER = "private, max-age=31536000, immutable"
FORKED = playbook(
    "  - step: both\n    tool: {kind: noop}\n    set: {ctx.text: '{{ \"x\" * 5000 }}'}\n"
    "    next: {spec: {mode: inclusive}, arcs: [{step: fast}, {step: ask}, {step: never, when: '{{ false }}'}]}\n"
    "  - {step: fast, tool: {kind: noop}, next: meet}\n"
    "  - {step: ask, tool: {kind: wait, signal: go}, next: meet}\n"
    "  - {step: never, tool: {kind: noop}, next: meet}\n"
    "  - {step: meet, tool: {kind: noop}}\n",
    "forked",
)
LOOPED = playbook(
    "  - step: get_token\n    loop: {in: [1, 2, 3], iterator: i}\n    tool: {kind: noop, result: '{{ i }}'}\n", "looped"
)


async def stream(served: Served, path: str, last: str | None = None) -> AsyncIterator[tuple[str, str, Any]]:
    """Yield (id, event, data) of a stream."""
    async with served.http.stream("GET", path, headers={} if last is None else {"Last-Event-ID": last}) as answer:
        found: dict[str, str] = {}
        async for line in answer.aiter_lines():
            name, _, value = line.partition(": ")
            if line:
                found[name] = value
            elif "data" in found:
                yield found.get("id", ""), found.get("event", ""), msgspec.json.decode(found["data"])
                found = {}


def at(part: dict[str, Any], key: str, seq: int) -> int:
    """Look up a value, as the browser does."""
    seqs, values = part["series"].get(key, ([], []))
    held = [value for mark, value in zip(seqs, values, strict=True) if mark <= seq]
    return held[-1] if held else 0


async def test_a_track_is_what_the_log_says_and_goes_on_after_any_event(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(TWO)
        await served.until(started, "completed")
        path = f"/api/executions/{started}/track"
        part = await served.json("GET", path)
        events = await served.services.store.read(started)
        plan = await served.services.control.plan(str(events[0].payload["playbook"]))
        track = build(plan, started, events)
        assert part["series"] == {key: [seqs, values] for key, (seqs, values) in track.marks_after(0).items()}
        assert (part["seq"], part["t0"], part["head_at"]) == (len(events), events[0].timestamp, events[-1].timestamp)
        assert [part["t0"] + ms for ms in part["times"]] == [
            fold(started, events[: n + 1]).at for n in range(len(events))
        ]
        assert [(run["run"], run["state"], run["role"]) for run in part["runs"]] == [
            ("one#1", "done", "step"),
            ("two#1", "done", "step"),
        ]
        for seq in range(1, len(events) + 1):
            shown = {step: part["states"][at(part, f"s:{step}", seq)] for step in ("one", "two")}
            steps = project(plan, fold(started, events[:seq])).steps
            assert shown == {step: steps.get(step, "") for step in shown}
        two = next(run["scheduled"][0] for run in part["runs"] if run["run"] == "two#1")
        rest = await served.json("GET", f"{path}?after={two}")
        assert [run["run"] for run in rest["runs"]] == ["two#1"]
        assert all(seqs[0] > two for seqs, _ in rest["series"].values())
        assert part["times"] == part["times"][:two] + rest["times"]
        end = await served.json("GET", f"{path}?after={len(events)}")
        assert (end["series"], end["runs"], end["times"]) == ({}, [], [])


async def test_the_ordinary_step_runs_of_many_are_columns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(FORKED)
        await served.until(started, "waiting")
        path = f"/api/executions/{started}/track"
        few = await served.json("GET", path)
        assert few["plain"] is None
        monkeypatch.setattr(moments, "MANY", 1)
        many = await served.json("GET", path)
        plain = many["plain"]
        done = [run for run in few["runs"] if run["state"] == "done" and not run["waits"]]
        ordinary = [run for run in done if run["attempts"][0][:2] == [run["started"][1], run["ended"][1]]]  # to the ms
        assert plain["run"] == [run["run"] for run in ordinary]
        assert [run["run"] for run in many["runs"]] == [run["run"] for run in few["runs"] if run not in ordinary] != []
        assert [plain["names"][at] for at in plain["step"]] == [run["step"] for run in ordinary]
        ends = zip(plain["scheduled"], plain["ended"], plain["scheduled_ms"], plain["ended_ms"], strict=True)
        assert [[event + more, ms + long] for event, more, ms, long in ends] == [run["ended"] for run in ordinary]


async def test_a_track_is_extended_and_shows_arcs_joins_and_waits(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(FORKED)
        await served.until(started, "waiting")
        live = await served.services.tracks.get(started)
        before = await served.json("GET", f"/api/executions/{started}/track")
        last = before["seq"]
        assert before["states"][at(before, "x", last)] == "waiting"
        assert at(before, "j:meet", last) == JOIN_BASE + 2
        assert [at(before, key, last) for key in ("a:both#0", "a:both#1", "r:both#2", "a:both#2")] == [1, 1, 1, 0]
        assert next(run["waits"] for run in before["runs"] if run["run"] == "ask#1")[0][1:] == [None, "signal"]
        await served.json("POST", f"/api/executions/{started}/signal", {"name": "go", "data": 1})
        await served.until(started, "completed")
        after = await served.json("GET", f"/api/executions/{started}/track?after={last}")
        assert await served.services.tracks.get(started) is live
        assert at(after, "n:meet", after["seq"]) == 0
        assert next(run["waits"] for run in after["runs"] if run["run"] == "meet#1")[0][2] == "join"
        assert next(run["waits"] for run in after["runs"] if run["run"] == "ask#1")[0][1] is not None


async def test_a_track_is_followed_to_the_end_and_resumed(tmp_path: Path) -> None:
    async with listening(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(WAITS)
        await served.until(started, "waiting")
        path = f"/api/executions/{started}/track/stream"
        parts: list[dict[str, Any]] = []
        async with asyncio.timeout(30):
            async for name, event, data in stream(served, path):
                if event == "end":
                    break
                assert (int(name), event) == (data["seq"], "")
                parts.append(data)
                if len(parts) == 1:
                    await served.json("POST", f"/api/executions/{started}/signal", {"name": "go", "data": 1})
        whole = await served.json("GET", f"/api/executions/{started}/track")
        assert [one["after"] for one in parts] == [0, *(one["seq"] for one in parts[:-1])]
        assert [ms for one in parts for ms in one["times"]] == whole["times"]
        series: dict[str, list[list[int]]] = {}
        for one in parts:
            for key, (seqs, values) in one["series"].items():
                known = series.setdefault(key, [[], []])
                series[key] = [known[0] + seqs, known[1] + values]
        assert series == whole["series"]
        again = [(event, data) async for _, event, data in stream(served, path, str(parts[0]["seq"]))]
        assert [data["after"] for event, data in again if not event] == [parts[0]["seq"]]
        assert again[-1][0] == "end"
        nothing = [event async for _, event, _ in stream(served, f"{path}?after={whole['seq']}")]
        assert nothing == ["end"]
        bad = await served.http.get(path, headers={"Last-Event-ID": "x"})
        assert bad.status_code == 400


async def test_a_moment_is_exact_at_every_event_and_cached_for_ever(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(FORKED)
        await served.until(started, "waiting")
        events = await served.services.store.read(started)
        path = f"/api/executions/{started}/moment"
        found: dict[str, Any] = {}
        for seq in range(len(events) + 1):
            answer = await served.http.get(f"{path}?seq={seq}")
            assert answer.headers["cache-control"] == FOR_EVER
            found = answer.json()
            state = fold(started, events[:seq])
            event = events[seq - 1] if seq else None
            assert (found["seq"], found["checksum"]) == (seq, checksum(state))
            assert (found["event"], found["at"]) == ((event.event_type, event.timestamp) if event else (None, None))
            assert found["status"] == project(None, state).status
            assert {token["token"] for token in found["tokens"]} == set(state.tokens)
        assert [(token["step"], token["state"]) for token in found["tokens"]] == [("meet", "joining")]
        assert found["ctx"]["text"] == {"cut": '"' + "x" * 199, "bytes": 5_002}
        patched = next(event.seq for event in events if event.event_type == "ctx.patched")
        changes = (await served.json("GET", f"{path}?seq={patched}"))["changes"]
        assert changes == [{"path": "ctx.text", "before": None, "after": found["ctx"]["text"]}]
        now = await served.http.get(path)
        assert (now.json()["seq"], now.headers["cache-control"]) == (len(events), "no-store")
        problem = await served.json("GET", f"{path}?seq={len(events) + 1}", None, 400)
        assert f"the log goes from 1 to {len(events)}" in problem["detail"]


async def test_moments_and_tracks_hide_secrets_and_show_steps_that_sound_like_one(tmp_path: Path) -> None:
    text = playbook(
        "  - step: one\n    tool: {kind: noop}\n    set: {ctx.password: hunter2-hunter2, ctx.long: "
        "{pad: '{{ \"x\" * 3000 }}', api_key: hunter2-hunter2}}\n",
        "secretive",
    )
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(text)
        last = (await served.until(started, "completed"))["last_seq"]
        for seq in range(1, last + 1):
            answer = await served.http.get(f"/api/executions/{started}/moment?seq={seq}")
            assert "hunter2" not in answer.text
        now = await served.json("GET", f"/api/executions/{started}/moment")
        assert now["ctx"]["password"] == "(masked secret)"
        looped = await served.start(LOOPED)
        await served.until(looped, "completed")
        part = await served.json("GET", f"/api/executions/{looped}/track")
        assert part["states"][at(part, "s:get_token", part["seq"])] == "done"
        assert at(part, "l:get_token#1", part["seq"]) == 3
        assert part["runs"][0]["items"] == {"total": 3, "ended": 3, "failed": 0}


async def test_what_does_not_exist_or_was_deleted_has_no_track(tmp_path: Path) -> None:
    async with in_process(tmp_path) as served, served.embedded.run_worker(""):
        started = await served.start(FAILS)
        await served.until(started, "failed")
        paths = [f"/api/executions/{started}/{name}" for name in ("track", "moment?seq=3", "track/stream")]
        for path in paths[:2]:
            await served.json("GET", path)
        await served.json("DELETE", f"/api/executions/{started}")
        for path in [*paths, "/api/executions/123/track", "/api/executions/x/moment"]:
            assert (await served.http.get(path)).status_code == 404
