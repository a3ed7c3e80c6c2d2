"""`noetl webhook`: create, list, show, pause, resume, delete and test webhooks.

Tested in tests/acceptance/triggers/test_webhook_cli.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from noetl.cli.arguments.command_group import command_group
from noetl.cli.arguments.options import AsJson, Place
from noetl.cli.output.format import to_json
from noetl.cli.runtime.terminal import echo
from noetl.cli.triggers.actions import PAGE, Paused, TriggerNoun, add_changes, add_list, add_show, maker
from noetl.model.errors import InvalidInput

if TYPE_CHECKING:
    from noetl import Client
    from noetl.wire.triggers.webhooks import WebhookRow

Auth = Annotated[
    str, typer.Option("--auth", metavar="FORM", help="Proof of a delivery: secret, hmac, github or stripe.")
]
Credential = Annotated[
    str, typer.Option("--credential", metavar="NAME", help="Credential whose value is the shared secret. Required.")
]
Header = Annotated[str, typer.Option("--header", metavar="NAME", help="Header with the secret or the signature.")]
Prefix = Annotated[str, typer.Option("--prefix", metavar="TEXT", help="Text before the signature, with hmac.")]
Encoding = Annotated[str, typer.Option("--encoding", metavar="NAME", help="Encoding of the signature: hex or base64.")]
Stamp = Annotated[
    str, typer.Option("--timestamp-header", metavar="NAME", help="Header with the signed timestamp, with hmac.")
]
Tolerance = Annotated[str, typer.Option("--tolerance", metavar="TIME", help="Largest age of a timestamp.")]
Dedup = Annotated[
    str, typer.Option("--dedup", metavar="TEMPLATE", help="Key of a delivery, which starts one execution.")
]
Mapped = Annotated[
    str | None,
    typer.Option(
        "--payload", metavar="JSON|@FILE", help="Workload values with templates over headers, body and query."
    ),
]
Wait = Annotated[
    str, typer.Option("--wait-up-to", metavar="TIME", help="Wait for the end of the execution, at most 30s.")
]
Version = Annotated[
    int | None, typer.Option("--version", help="Version of the playbook. [default: the latest at each delivery]")
]


async def _page(client: Client, path: str | None, cursor: str | None) -> tuple[list[WebhookRow], str | None]:
    page = await client.webhooks(path, cursor=cursor, limit=PAGE)
    return page.webhooks, page.next


def _state(row: WebhookRow) -> str:
    return "broken" if not row.auth else "paused" if row.paused else "active"


def _lines(row: WebhookRow) -> Iterator[str]:
    yield f"{row.webhook_id}: POST {row.url} starts {row.path} ({_state(row)})"
    if not row.auth:
        yield f"  made by {maker(row)}. {row.problem}"
        return
    yield f"  {row.auth} in the header {row.header}, credential {row.credential}, made by {maker(row)}"
    if row.dedup:
        yield f"  dedup: {row.dedup}"
    if row.payload:
        yield f"  payload: {to_json(row.payload)}"
    if row.problem:
        yield f"  refuses deliveries: {row.problem}"


NOUN: TriggerNoun[WebhookRow] = TriggerNoun(
    "webhook",
    "Webhooks are received by a server",
    _page,
    find=lambda client, id: client.webhook(id),
    pause=lambda client, id: client.pause_webhook(id),
    resume=lambda client, id: client.resume_webhook(id),
    delete=lambda client, id: client.delete_webhook(id),
    line=lambda row: f"{row.webhook_id:<28} {row.auth:<8} {_state(row):<8} {row.path}",
    changed=lambda row: f"{row.webhook_id}: POST {row.url} starts {row.path}",
)
Id = Annotated[str, NOUN.id]
command = command_group(
    "Create, list, show, pause, resume, delete and test a server's webhooks, which start executions."
)


@command.command("create")
def create(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the webhook, which is its ID.")],
    path: Annotated[str, typer.Argument(metavar="PATH", help="Playbook in the server's catalog.")],
    auth: Auth = "hmac",
    credential: Credential = "",
    header: Header = "",
    prefix: Prefix = "",
    encoding: Encoding = "hex",
    timestamp_header: Stamp = "",
    tolerance: Tolerance = "5m",
    dedup: Dedup = "",
    payload: Mapped = None,
    wait: Wait = "0",
    version: Version = None,
    paused: Paused = False,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Create a webhook, and print the path that takes its deliveries."""

    async def job(client: Client) -> None:
        from noetl.cli.arguments.payload import read_payload

        if not credential:
            fix = "`noetl credential put NAME --type secret --data @FILE` stores the shared secret."
            raise InvalidInput(f"A webhook needs --credential. {fix}")
        made = await client.create_webhook(
            name, path, auth, credential, header=header, prefix=prefix, encoding=encoding, timestamp_header=timestamp_header,
            tolerance=tolerance, dedup=dedup, payload=read_payload((), payload), wait=wait, version=version, paused=paused,
        )  # fmt: skip
        NOUN.print_changed(made, "created", json)

    NOUN.on_server(server, job)


add_list(command, NOUN, "List webhooks: ID, form of authentication, state and playbook.")
add_show(command, NOUN, "Show a webhook, and why it refuses deliveries, if it does.", _lines)
add_changes(
    command,
    NOUN,
    pause="Pause a webhook: deliveries are refused until it is resumed.",
    resume="Resume a paused webhook.",
    delete="Delete a webhook.",
)


@command.command("test")
def deliver(
    id: Id,
    body: Annotated[str, typer.Option("--body", metavar="FILE", help="File with the body; `-` reads stdin.")] = "",
    content_type: Annotated[
        str, typer.Option("--content-type", metavar="TYPE", help="Media type of the body.")
    ] = "application/json",
    headers: Annotated[
        list[str] | None, typer.Option("--header", metavar="NAME=VALUE", help="Header of the delivery; repeatable.")
    ] = None,
    json: AsJson = False,
    server: Place = None,
) -> None:
    """Sign and deliver a body, which starts an execution."""

    async def job(client: Client) -> None:
        from noetl.cli.arguments.files import load_file

        given = dict(_header(one) for one in headers or ())
        try:
            text = load_file(body).decode() if body else "{}"
        except UnicodeDecodeError:
            raise InvalidInput(f"{body} is not UTF-8. A delivery is JSON, a form or plain text in UTF-8.") from None
        found = await client.test_webhook(id, text, content_type=content_type, headers=given)
        again = " (started by an earlier delivery)" if found.repeated else ""
        echo(to_json(found) if json else f"{found.execution_id} {found.status}{again}")

    NOUN.on_server(server, job)


def _header(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise InvalidInput(f"`--header {text}` is not of the form NAME=VALUE. Write `--header X-Event=push`.")
    return name.strip(), value
