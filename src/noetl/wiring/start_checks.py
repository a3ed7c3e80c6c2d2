"""Check settings as the start of a server does: kinds of tools, and the identity provider.

Those that need no other part of NoETL are checked when they are read. Tested in
tests/acceptance/admin/test_configuration_cli.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from noetl.model.errors import InvalidSetting
from noetl.settings import QUEUE_KIND_LIMITS, Settings, server_settings, settings
from noetl.tools import kinds


def check_kind_limits(settings: Settings) -> None:
    """Check that limits name kinds that exist. Raises InvalidSetting."""
    known = kinds()
    for name in settings.work_limits:
        what, _, which = name.partition(" ")
        if what == "kind" and which not in known:
            from noetl.dsl.diagnostic import did_you_mean

            hint = did_you_mean(which, known) or f" The kinds are {', '.join(sorted(known))}."
            told = f"{QUEUE_KIND_LIMITS} names the kind `{which}`, which does not exist.{hint}"
            raise InvalidSetting(told, variable=QUEUE_KIND_LIMITS)


def check_limits_of(environment: Mapping[str, str]) -> None:
    """Check the limits that variables set. Raises InvalidSetting."""
    check_kind_limits(settings(environment, Path.cwd()))


def check_provider_of(environment: Mapping[str, str]) -> None:
    """Check the identity provider that variables name. Raises InvalidSetting."""
    from noetl.server.auth.people.oidc import checked_roles

    oidc = server_settings(environment).oidc
    if oidc is not None:
        checked_roles(oidc)
