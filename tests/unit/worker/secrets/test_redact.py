"""No secret leaves the worker: redacted by value in any encoding, or by name."""

from __future__ import annotations

import base64
import html
import json
import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus
from xml.sax.saxutils import escape

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from noetl.masking.values import LEAST, MASK, _variants
from noetl.model.messages import Ending, Record, Report
from noetl.model.outcome import failed
from noetl.model.refs import expanded
from noetl.worker.secrets.redact import Secrets
from tests.unit.worker.system import System, system

TOKEN = 'tök/en+"7&'
MARKED = """a'b"c<d>é/&\\9"""


def knowing(**credential: Any) -> Secrets:
    made = Secrets()
    made.learn("api", credential)
    return made


@pytest.mark.parametrize(
    "coded",
    [
        TOKEN,
        quote(TOKEN),
        quote(TOKEN, safe="").lower(),
        quote_plus(TOKEN),
        html.escape(TOKEN),
        json.dumps({"t": TOKEN}),
        json.dumps({"t": TOKEN}, ensure_ascii=False),
        json.dumps(json.dumps([TOKEN])),
        repr(f"x{TOKEN}"),
        base64.b64encode(TOKEN.encode()).decode(),
        *(base64.b64encode(("u" * n + ":" + TOKEN + "!").encode()).decode() for n in range(4)),
        *(base64.urlsafe_b64encode(("u" * n + TOKEN).encode()).decode() for n in range(4)),
    ],
)
def test_a_value_is_found_in_every_encoding(coded: str) -> None:
    secrets = knowing(token=TOKEN)
    assert MASK in secrets.text(f"before {coded} after")
    assert MASK in secrets.value({"a": [f"({coded})"]})["a"][0]
    assert secrets.may_be_in(msgspec.json.encode({"a": coded}))
    assert secrets.holds([{"k": coded}])


@pytest.mark.parametrize(
    "coded",
    [
        html.escape(MARKED),
        html.escape(MARKED, quote=False),
        escape(MARKED, {'"': "&quot;"}),
        escape(MARKED, {'"': "&quot;", "'": "&apos;"}),
        escape(MARKED, {'"': "&#34;", "'": "&#39;"}),
        json.dumps(MARKED).replace("/", "\\/"),
        json.dumps(MARKED, ensure_ascii=False).replace("/", "\\/"),
        *(
            json.dumps(MARKED, ensure_ascii=ascii)
            .replace("<", "\\u003c")
            .replace(">", "\\u003e")
            .replace("&", "\\u0026")
            .replace("'", quote)
            for ascii in (True, False)
            for quote in ("'", "\\u0027")
        ),
        *(repr(f"{more}{MARKED}") for more in ("", "'", '"')),
        *(repr((more + MARKED).encode()) for more in ("", "'", '"')),
        repr("a'bcdefg"),
        repr(b"a'bcdefg"),
        repr(b"a'bcdefg\""),
        str({"k": [MARKED.encode()]}),
    ],
)
def test_a_value_is_found_however_code_and_markup_escape_it(coded: str) -> None:
    secrets = knowing(token=MARKED, other="a'bcdefg")
    left = secrets.text(f"before {coded} after").replace(MASK, "")
    assert not any(part in left for part in ("c<d", "c&lt;d", "c\\u003cd", "9", "bcdefg")), left
    assert secrets.may_be_in(msgspec.json.encode({"a": coded}))
    assert secrets.value([coded]) != [coded]


def test_a_secret_of_ordinary_characters_has_few_forms() -> None:
    assert len(set(_variants("s3cret-value_of.it"))) < 16  # each makes the search slower


@given(st.text(min_size=LEAST), st.text(), st.text())
def test_no_value_survives(value: str, before: str, after: str) -> None:
    secrets = Secrets()
    secrets.learn("x", {"token": value})
    if value in MASK or value.strip() == "" or "://" in value:
        return
    assert value not in secrets.value(f"{before}{value}{after}").replace(MASK, "")


def test_what_is_no_secret_is_left_alone() -> None:
    secrets = knowing(host="db.local", user="reader", dbname="orders", password="hunter2!", port=5432)
    data = {"rows": [{"table": "orders", "host": "db.local", "by": "reader"}], "page_token": "hunter"}
    assert secrets.value(data) is data
    assert not secrets.may_be_in(msgspec.json.encode(data))
    assert not secrets.holds(data)


@pytest.mark.parametrize(
    "credential",
    [
        {"token": "s3cret-value", "namespace": "admins-of-it", "mount": "kv-prod", "url": "https://vault.local:8200"},
        {
            "access_token": "s3cret-value",
            "expires_on": 1800000000,
            "ext_expires_in": 864000,
            "not-before-policy": 1700000,
        },
        {
            "client_secret": "s3cret-value",
            "auth_method": "private_key",
            "answer": "id_token",
            "resource": "https://h/api/x",
        },
    ],
)
def test_what_says_where_or_how_long_is_no_secret(credential: dict[str, Any]) -> None:
    secrets = knowing(**credential)
    assert secrets.value(credential) == {name: MASK if "s3cret" in str(v) else v for name, v in credential.items()}


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://reader:hunt%2Fer2@db.local/orders",
        "host=db.local password='hunt/er2' dbname=orders",
        "password=hunt/er2 host=db.local",
    ],
)
def test_the_password_in_an_address_is_a_secret_and_the_rest_is_not(dsn: str) -> None:
    secrets = knowing(dsn=dsn)
    assert secrets.value(f"cannot reach {dsn}") == f"cannot reach {MASK}"
    assert secrets.value("with hunt/er2") == f"with {MASK}"
    assert secrets.value("db.local orders") == "db.local orders"
    assert knowing(dsn="postgresql://db.local/orders").value("postgresql://db.local/orders").startswith("postgresql")


@given(st.integers(1, 11), st.text(alphabet="xyz …", max_size=9))
def test_nothing_shows_how_a_secret_begins_or_ends(kept: int, other: str) -> None:
    token = "s3cret-value"
    secrets = knowing(token=token)
    for made in (f"{other}{token[:kept]}…", f"…{token[-kept:]}{other}", f"`{token[:kept]}…` and …{token[-kept:]}"):
        assert (secrets.text(made), secrets.value(made)) == (made, made)
        assert not secrets.may_be_in(msgspec.json.encode([made]))


@given(st.integers(1, 11), st.text(alphabet="xyz", max_size=60))
def test_what_may_be_half_a_secret_is_left_out_beside_a_cut(kept: int, other: str) -> None:
    token = "s3cret-value"
    secrets, whole = knowing(token=token), f"{'a' * 99}{token}{other}"
    for half in (token[:kept], "#" * kept):  # what is shown does not depend on it
        ended, begun = secrets.text(f"{whole}{half}", "end"), secrets.text(f"{half}{other}{token}{'a' * 99}", "start")
        assert f"{'a' * 99}{MASK}{other}".startswith(ended)
        assert f"{other}{MASK}{'a' * 99}".endswith(begun)
        assert (len(ended) >= 50, len(begun) >= 50, "(" in ended, "(" in begun) == (
            True,
            True,
            MASK in ended,
            MASK in begun,
        )
    assert secrets.text(f"a {token}{'y' * 20}", "end") == f"a {MASK}"  # not half of it
    assert secrets.text(f"{'y' * 20}{token} a", "start") == f"{MASK} a"
    assert Secrets().text(whole, "end") == whole


@pytest.mark.parametrize("word", ["x", "-", "0", "x-", "x ", " ", '"', "a://", "&a", "bearer ", "cookie:"])
def test_a_long_line_is_masked_in_time_that_grows_with_its_length(word: str) -> None:
    line = word * (500_000 // len(word)) + " token=abcdefgh1"
    assert knowing(password="hunter22").text(line).endswith(MASK)


HOOK = "https://hooks.example.com/services/T0AB/B0CD/x8Kq2LmPz71RtYw3"


@pytest.mark.parametrize(
    ("credential", "shown", "masked"),
    [
        ({"url": HOOK}, f"POST {HOOK} failed", f"POST {MASK} failed"),
        ({"url": HOOK}, "POST /services/T0AB/B0CD/x8Kq2LmPz71RtYw3", f"POST {MASK}"),
        ({"url": HOOK}, "hook x8Kq2LmPz71RtYw3", f"hook {MASK}"),
        ({"url": HOOK}, "hooks.example.com", "hooks.example.com"),
        ({"webhook": "http://h/hook?k=abc"}, "http://h/hook?k=abc", MASK),
        ({"url": "https://api.example.com/"}, "https://api.example.com/orders", "https://api.example.com/orders"),
        ({"base_url": "https://api.example.com/v2"}, "https://api.example.com/v2/x", "https://api.example.com/v2/x"),
        ({"base_url": "https://h/bot12345678:AbCdEfGh/x"}, "a bot12345678:AbCdEfGh", f"a {MASK}"),
        ({"endpoint": "https://h/x?key=abcdef&api_key=hunter22"}, "no hunter22", f"no {MASK}"),
        ({"token_url": f"{HOOK}/token"}, f"no token from {HOOK}/token", f"no token from {HOOK}/token"),
    ],
)
def test_the_url_of_a_web_hook_is_a_secret(credential: dict[str, str], shown: str, masked: str) -> None:
    secrets = knowing(**credential)
    assert secrets.text(shown) == masked
    assert secrets.value({"x": [shown]}) == {"x": [masked]}


@pytest.mark.parametrize("odd", ["\ud800aaaaaaaa", "bbbb\udfffbbbb", "https://[aaaaaaaa"])
def test_a_value_that_is_no_valid_text_or_url_keeps_no_other_from_being_learned(odd: str) -> None:
    secrets = knowing(token=odd)
    assert secrets.value(f"x {odd}") == f"x {MASK}"
    secrets.learn("other", {"token": "s3cret-value"})
    assert secrets.value("x s3cret-value") == f"x {MASK}"


def test_every_line_of_a_key_file_is_a_secret() -> None:
    lines = ["-----BEGIN PRIVATE KEY-----", "MIIEvQIBADANBgkqhkiG9w0BAQEF", "AASCBKcwggSjAgEAAoIBAQDPqf2y"]
    secrets = knowing(data={"private_key": "\n".join(lines)})
    assert secrets.text(lines[2]) == MASK


def test_a_short_value_is_masked_under_the_name_of_a_secret_only(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        secrets = knowing(password="abc", pin=1234)
    assert "`password` of the credential `api`" in caplog.text
    assert "abc" not in caplog.text
    assert secrets.value({"password": "abc", "letters": "abc", "db_password": "abc", "token": 1234, "n": 1234}) == {
        "password": MASK,
        "letters": "abc",
        "db_password": MASK,
        "token": MASK,
        "n": 1234,
    }


@pytest.mark.parametrize("number", [8765432109, -123456, 98765.4321, 12345678901234567890, 1.25e22, 123456.0])
def test_a_number_that_is_a_secret_is_masked_as_a_number_too(number: float) -> None:
    for secrets in (knowing(pin=number), knowing(pins=[{"pin": number}])):
        data = {"n": number, "all": [number, {number: 1}], "text": f"pin {number}", "other": number * 2}
        masked = {"n": MASK, "all": [MASK, {MASK: 1}], "text": f"pin {MASK}", "other": number * 2}
        assert secrets.value(data) == masked
        assert secrets.may_be_in(msgspec.json.encode([number]))
        assert all(map(secrets.holds, (number, [number], {"a": number}, {number: 1})))
        assert not secrets.holds([number * 2, True, None])
        error = secrets.outcome(failed("auth", "no", details={"n": number})).error
        assert error is not None
        assert error.details == {"n": MASK}


@pytest.mark.parametrize(
    ("secret", "number", "is_masked"),
    [
        (8765432, 8765432.0, True),
        (8765432.0, 8765432, True),
        ("8765432", 8765432, True),
        (12345678901234567168, 12345678901234567168.0, True),
        ("008765432", 8765432, False),
        (12345, 12345, False),
        (12345.0, 12345, False),
        (True, True, False),
        ("infinity", float("inf"), False),
    ],
)
def test_a_number_is_masked_if_it_equals_a_secret_that_is_not_short(secret: Any, number: Any, is_masked: bool) -> None:
    secrets = knowing(pin=secret)
    assert secrets.value([number]) == [MASK if is_masked else number]
    assert secrets.holds(number) is is_masked
    report = Report("m", "r", 1, ending=Ending("ok", [number]))
    assert (secrets.message(report) != report) is is_masked


def test_a_time_or_an_index_of_a_report_is_no_secret() -> None:
    row = Record("task.done", 8765432, "t", iteration=8765432, payload={"n": 8765432})
    report = Report("m", "r", 8765432, "w", (row,), ending=Ending("ok", 8765432))
    masked = knowing(pin=8765432).message(report)
    shown = Record("task.done", 8765432, "t", iteration=8765432, payload={"n": MASK})
    assert masked == Report("m", "r", 8765432, "w", (shown,), ending=Ending("ok", MASK))


def test_numbers_are_forgotten_with_their_secrets() -> None:
    secrets = knowing(pin=8765432)
    secrets.learn("many", {"tokens": [f"token-{number:06}" for number in range(10_000)]})
    assert not secrets.holds(8765432)


@pytest.mark.parametrize(
    ("line", "masked"),
    [
        ("password=abc next", f"password={MASK} next"),
        ('{"api_key": "k1", "n": 2}', f'{{"api_key": "{MASK}", "n": 2}}'),
        ("Authorization: Bearer abcdef123", f"Authorization: {MASK}"),
        ("GET /?access_token=abcdef123&page=2", f"GET /?access_token={MASK}&page=2"),
        ("Cookie: sid=abc; theme=dark", f"Cookie: {MASK}"),
        ('{"set-cookie": "sid=abc; Path=/", "n": 1}', f'{{"set-cookie": "{MASK}", "n": 1}}'),
        ("sessionid=0123456789 next", f"sessionid={MASK} next"),
        ("secret: 0123456789", f"secret: {MASK}"),
        ("credentials='0123456789'", f"credentials='{MASK}'"),
        ("the server refused Bearer abcdefghijklmnop", f"the server refused Bearer {MASK}"),
        ("session: closed", "session: closed"),
        ("the bearer sent nothing", "the bearer sent nothing"),
        ("GET http://h/?page=2&access_token=abcdef123 failed", f"GET http://h/?page=2&access_token={MASK} failed"),
        ("cannot reach http://ada:pw@h:80/x", f"cannot reach http://ada:{MASK}@h:80/x"),
        ("unexpected token: end", "unexpected token: end"),
        ("next_page_token=abcdefghijk", "next_page_token=abcdefghijk"),
        ("12 rows of orders", "12 rows of orders"),
    ],
)
def test_lines_for_people_are_masked_by_name_too(line: str, masked: str) -> None:
    assert Secrets().text(line) == masked
    assert Secrets().text(masked) == masked


def test_details_and_lines_of_an_error_are_masked_like_its_message() -> None:
    secrets = Secrets()
    secrets.learn("c", {"token": "s3cret-value"})
    where = {"line": 2, "source": "login(password='abc')", "frames": [{"line": 2, "source": "s3cret-value"}]}
    details = {"url": "http://h/?api_key=abc&n=1", "body": '{"token": "abcdefgh", "n": 1}', "status": 401}
    masked = secrets.outcome(failed("auth", "no", details=details, where=where)).error
    assert masked is not None
    assert masked.details == {
        "url": f"http://h/?api_key={MASK}&n=1",
        "body": f'{{"token": "{MASK}", "n": 1}}',
        "status": 401,
    }
    assert masked.where == {
        "line": 2,
        "source": f"login(password='{MASK}')",
        "frames": [{"line": 2, "source": MASK}],
    }


def test_a_report_without_secrets_is_not_copied() -> None:
    report = Report("m", "r", 1, "w", (Record("task.done", 1, "t"),), ending=Ending("ok", {"password": "x"}))
    assert Secrets().message(report) is report
    assert knowing(token="something").message(report) is report
    masked = knowing(token="else-where").message(Report("m", "r", 1, ending=Ending("ok", ["else-where"])))
    assert masked == Report("m", "r", 1, ending=Ending("ok", [MASK]))


def test_a_cookie_that_a_response_sets_is_masked_by_name_once_one_was_seen() -> None:
    secrets, headers = Secrets(), {"set-cookie": "sid=1; Path=/", "server": "x"}
    secrets.learn_response({"status": 200, "headers": {"server": "x"}})
    report = Report("m", "r", 1, ending=Ending("ok", {"headers": headers}))
    assert secrets.message(report) is report
    secrets.learn_response({"status": 200, "headers": headers})
    masked = secrets.message(report).ending
    assert masked == Ending("ok", {"headers": {"set-cookie": MASK, "server": "x"}})


# In the whole system

SECRET = "s3cr3t-Value/+"
LONG = "".join(f"part{number:03d}-" for number in range(60))
HELD: dict[str, dict[str, Any]] = {
    "api": {"token": SECRET},
    "short": {"password": "abc"},
    "long": {"token": LONG},
    "pin": {"pin": 8765432109},
}
LEAK = """
- step: leak
  tool:
    - first: {kind: python, auth: api, code: "print(auth['token']); result = {'t': auth['token'], 'n': 1}"}
    - again: {kind: python, input: {t: "{{ first.t }}"}, code: "result = {'same': t == 's3cr3t' + '-Value/+', 'url': f'x?{t}'}"}
  next: {arcs: [{step: see, args: {given: "{{ leak.first.t }}"}}]}
- step: see
  tool: {kind: python, input: {given: "{{ args.given }}"}, code: "raise ValueError(given)"}
"""


async def credential(name: str) -> Mapping[str, Any]:
    return HELD[name]


def worker_resources(run: System) -> None:
    run.running.pop().cancel()
    run.shared = replace(run.shared, credentials=credential)
    run.worker()


@pytest.mark.asyncio
async def test_nothing_in_the_log_has_the_secret_and_tasks_of_the_pipeline_do() -> None:
    async with system() as run:
        worker_resources(run)
        execution = await run.start(LEAK)
        row = await run.ended(execution)
        events = await run.store.read(execution)
        told = b"".join(map(msgspec.json.encode, events)) + msgspec.json.encode(row)
        assert SECRET.encode() not in told
        assert row["status"] == "failed"
        assert MASK in row["error"]["message"]
        results = expanded(next(event for event in events if event.event_type == "step.done").payload["result"])
        assert (results["same"], results["url"], results["first"]["t"]) == (True, f"x?{MASK}", MASK)


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "write", ["set: {ctx.t: '{{ output.data.t }}'}", "set: {ctx.t: [{deep: 'x{{ output.data.t }}'}]}"]
)
async def test_writing_a_secret_to_the_state_is_refused(write: str) -> None:
    async with system() as run:
        worker_resources(run)
        execution = await run.start(
            f"""
            - step: leak
              tool: {{kind: python, auth: api, code: "result = {{'t': auth['token']}}", {write}}}
            """
        )
        row = await run.ended(execution)
        assert row["status"] == "failed"
        assert "`ctx.t`: a secret of a credential must not be written" in row["error"]["message"]
        assert "`auth`" in row["error"]["message"]


@pytest.mark.asyncio
async def test_a_number_that_is_a_secret_is_not_in_the_log_and_not_written_to_the_state() -> None:
    leak = "result = {'n': auth['pin'], 'deep': [{auth['pin']: auth['pin'] + 0.0}]}"
    async with system() as run:
        worker_resources(run)
        execution = await run.start(
            f"""
            - step: leak
              tool: {{kind: python, auth: pin, code: "{leak}"}}
              next: again
            - step: again
              tool: {{kind: python, auth: pin, code: "{leak}", set: {{ctx.n: "{{{{ output.data.n }}}}"}}}}
            """
        )
        row = await run.ended(execution)
        assert "`ctx.n`: a secret of a credential must not be written" in row["error"]["message"]
        told = b"".join(map(msgspec.json.encode, await run.store.read(execution))) + msgspec.json.encode(row)
        assert b"8765432109" not in told


@pytest.mark.asyncio
async def test_a_secret_is_not_given_to_a_child() -> None:
    async with system() as run:
        worker_resources(run)
        row = await run.run(
            """
            - step: leak
              tool:
                - read: {kind: python, auth: api, code: "result = auth['token']"}
                - child: {kind: playbook, path: tests/other, input: {t: "{{ read }}"}}
            """
        )
        assert row["status"] == "failed"
        assert "must not be given to a child" in row["error"]["message"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("fields", "refused"),
    [
        ("data: {deep: ['x{{ read }}']}", "data"),
        ("ref: 'noetl://reports/{{ read }}', data: 1", "data"),
        ("uri: 'file://{{ workload.folder }}/kept.txt', data: 'x{{ read }}'", ""),
        ("data: {n: 1}", ""),
    ],
)
async def test_a_secret_is_not_stored_as_an_artifact(tmp_path: Path, fields: str, refused: str) -> None:
    async with system() as run:
        worker_resources(run)
        row = await run.run(
            f"""
            - step: leak
              tool:
                - read: {{kind: python, auth: api, code: "result = auth['token']"}}
                - put: {{kind: artifact, action: put, {fields.replace("{{ workload.folder }}", str(tmp_path))}}}
            """
        )
        assert row["status"] == ("failed" if refused else "completed"), row
        if refused:
            assert f"`{refused}`: a secret of a credential must not be written down" in row["error"]["message"]


@pytest.mark.asyncio
async def test_a_stored_result_is_masked_too() -> None:
    async with system() as run:
        worker_resources(run)
        execution = await run.start(
            """
            - step: leak
              tool: {kind: python, auth: api, code: "result = {'t': [auth['token']] * 9000}"}
              next: read
            - step: read
              tool: {kind: python, input: {t: "{{ leak.t }}"}, code: "result = [len(t), t[0]]"}
            """
        )
        assert (await run.ended(execution))["result"] == [9000, MASK]
        events = await run.store.read(execution)
        assert any(event.event_type == "result.stored" for event in events)
        assert SECRET.encode() not in b"".join(map(msgspec.json.encode, events))


@pytest.mark.asyncio
async def test_a_task_cannot_try_out_how_a_secret_begins() -> None:
    async with system() as run:
        worker_resources(run)
        row = await run.run(
            """
            - step: guess
              tool:
                - know: {kind: python, auth: api, code: "result = 1"}
                - try: {kind: python, code: "result = ['s3cr…', 's3cr3t-Valu…', 'zzzz…', '…lue/+']"}
            """
        )
        assert row["result"]["try"] == ["s3cr…", "s3cr3t-Valu…", "zzzz…", "…lue/+"]


@pytest.mark.asyncio
async def test_no_half_of_a_long_secret_is_kept_where_a_condition_reads_it_or_an_error_quotes_it() -> None:
    async with system() as run:
        worker_resources(run)
        execution = await run.start(
            """
            - step: leak
              tool:
                - first:
                    kind: python
                    auth: long
                    code: "result = {'t': 'x' + auth['token']}"
                    spec: {policy: {rules: [{when: "{{ output.data.t == 'x' }}", then: {do: fail}}, {else: {then: {do: continue}}}]}}
                - second: {kind: noop, result: "{{ 'a' | hash(first.t) }}"}
            """
        )
        assert (await run.ended(execution))["status"] == "failed"
        told = b"".join(map(msgspec.json.encode, await run.store.read(execution)))
        assert b'"(secret)"' in told
        assert b"part00" not in told
