"""Levels of a document of `kind: Subscription`."""

from __future__ import annotations

from noetl.dsl.grammar.document import API_VERSIONS, DOCUMENT_LEVELS
from noetl.dsl.grammar.layered_settings import ANY_MAP
from noetl.dsl.grammar.types import Choice, Field, Flag, Level, LevelOf, Number, OneOf, Text

_TRIGGER = next(level for level in DOCUMENT_LEVELS if level.name == "trigger_subscription")
_ELSEWHERE = frozenset({"subscription", "source", "auth", "dispatch", "paused"})
_SETTINGS = OneOf((ANY_MAP, Text()))

SUBSCRIPTION_LEVELS: tuple[Level, ...] = (
    Level(
        "subscription",
        "A subscription as a document of its own: a source of messages, and the playbook that each starts.",
        (
            Field("apiVersion", Choice(API_VERSIONS), "Version of the language.", required=True),
            Field("kind", Choice(("Subscription",)), "Always `Subscription`.", required=True),
            Field("metadata", LevelOf("metadata"), "Name and catalog path of the subscription.", required=True),
            Field("spec", LevelOf("subscription_spec"), "Source, playbook, and how messages are read.", required=True),
        ),
    ),
    Level(
        "subscription_spec",
        "Where the messages of a subscription come from, and which playbook they start.",
        (
            Field(
                "source",
                OneOf((ANY_MAP, Text())),
                "Kind of the source: `listen`, `table`, `folder` or `http`; or a map of its `kind` and its fields. Other "
                "sources are known, and cannot be read by this version.",
                required=True,
                example="table",
            ),
            Field("mode", Text(), "Has no effect: a server polls the source.", example="pull"),
            Field(
                "activation",
                OneOf((Flag(), ANY_MAP, Text())),
                "Whether the subscription is active: `false`, `manual`, `paused` or `enabled: false` registers it paused.",
                default="true",
            ),
            Field("auth", OneOf((Text(), ANY_MAP)), "Credential on the server.", aliases=("credential",)),
            Field(
                "stream",
                _SETTINGS,
                "What is read: the table, channel, folder or URL; or a map of fields of the source.",
                example="public.orders",
            ),
            Field("consumer", _SETTINGS, "How it is read: a map of fields of the source. A name has no effect."),
            Field("runtime", ANY_MAP, "`every` is the interval of polls; other settings have no effect."),
            Field("dispatch", OneOf((LevelOf("subscription_dispatch"), Text())), "Playbook to start.", required=True),
            Field(
                "dedup",
                OneOf((ANY_MAP, Flag(), Text())),
                "What identifies a message: `key`, a template for `http`. Other sources identify their messages "
                "themselves.",
            ),
            Field("description", Text(), "What the subscription is for.", aliases=("desc",)),
            *(known for known in _TRIGGER.fields if known.name not in _ELSEWHERE),
        ),
        example="spec: { source: table, auth: orders_db, stream: public.orders, consumer: { key: id }, "
        "dispatch: { playbook: shop/ship } }",
    ),
    Level(
        "subscription_dispatch",
        "The playbook that each message starts.",
        (
            Field("playbook", Text(), "Path of the playbook in the catalog.", required=True, aliases=("path",)),
            Field("version", Number(integer=True, least=1), "Version; by default the latest at each message."),
            Field(
                "payload",
                ANY_MAP,
                "Values for `workload`; templates read `message`.",
                default="message",
                aliases=("input", "workload", "args"),
                rendered="server",
            ),
        ),
        open=True,
    ),
    Level(
        "trigger_dispatch",
        "The playbook that a message starts.",
        (
            Field("playbook", Text(), "Path of the playbook in the catalog.", required=True),
            Field("version", Number(integer=True, least=1), "Version; by default the latest at each message."),
        ),
    ),
)
