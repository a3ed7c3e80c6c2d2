"""Checks of the store: reachable, its schema, a write, its clock, its keys.

Nothing is created or migrated. Tested in tests/acceptance/servers/test_doctor_cli.py.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from noetl.cli.doctor.finding import Finding, ok, problem, warning
from noetl.model.errors import InvalidInput, NoetlError
from noetl.settings import ENCRYPTION_KEY, Settings

if TYPE_CHECKING:
    from noetl.wiring.embedded import Store

_SKEW_MS: Final = 1_000
NTP: Final = "Synchronize the clocks, for example with chrony or systemd-timesyncd."
_NEW_KEY: Final = (
    f'Create one, and give it to every server and worker: `export {ENCRYPTION_KEY}="$(noetl credential key)"`.'
)


async def store(settings: Settings) -> AsyncIterator[Finding]:
    """Check the store of the settings."""
    from noetl.wiring.embedded import open_store

    if settings.database:
        findings = [one async for one in _schema(settings)]
        for one in findings:
            yield one
        if findings:
            return
    elif not settings.store.is_file():
        yield ok("store", f"{settings.store} does not exist yet; the first command that writes creates it")
        return
    try:
        opened = open_store(settings)
    except NoetlError as error:
        yield problem("store", str(error), "Correct it, or use another store: NOETL_HOME, NOETL_DB_URL.")
        return
    try:
        async for one in _opened(settings, opened):
            yield one
    finally:
        await opened.close()


async def _schema(settings: Settings) -> AsyncIterator[Finding]:
    from noetl.wiring.embedded import database_admin

    try:
        differences = await database_admin(settings.database).check()
    except NoetlError as error:
        yield problem(
            "store",
            str(error),
            "Check that the database runs and that NOETL_DB_URL has its host, port, user and password. `noetl db init` "
            "creates a missing database.",
        )
        return
    for line in differences:
        fix = "Run `noetl db migrate`." if "level" in line else "Restore the tables from a backup."
        yield problem("store", line, "Run `noetl db init`." if "at level 0" in line else fix)


async def _opened(settings: Settings, opened: Store) -> AsyncIterator[Finding]:
    try:
        await opened.probe()
        await opened.version()  # reads the authority's clock
    except NoetlError as error:
        yield problem("store", f"{error}", "Free disk space, or make the store writable; then run this command again.")
        return
    name = "the PostgreSQL database" if settings.database else str(settings.store)
    yield ok("store", f"{name} takes a write")
    authority = "the database" if settings.database else "the store, which open executions began with"
    yield skew(opened.clock.skew, authority)
    async for one in _keys(settings, opened):
        yield one


def skew(milliseconds: int, authority: str) -> Finding:
    """Return how far the clock of this machine is ahead of that of an authority."""
    if abs(milliseconds) <= _SKEW_MS:
        return ok("clock", f"this machine's clock agrees with that of {authority}")
    way = "ahead of" if milliseconds > 0 else "behind"
    found = f"The clock of this machine is {abs(milliseconds) / 1000:,.1f} s {way} that of {authority}."
    return problem("clock", found, NTP)


async def _keys(settings: Settings, opened: Store) -> AsyncIterator[Finding]:
    from noetl.server.auth.stored_credential import data_key_rows
    from noetl.wiring.credentials import credential_vault, key_file
    from noetl.wiring.embedded import open_team

    team = open_team(opened)
    stored = len(await team.credentials())
    if not settings.key and not settings.database and not key_file(settings).exists():
        if stored:
            fix = f"Restore {key_file(settings)} from a backup, or set {ENCRYPTION_KEY}. Without the key, store them again."
            yield problem("key", f"{stored} credentials are stored, and their key is missing.", fix)
        else:
            yield ok("key", "no key yet; the first stored credential creates one")
        return
    try:
        vault = credential_vault(settings)
    except InvalidInput as error:
        yield problem("key", str(error), f"Correct {ENCRYPTION_KEY}.")
        return
    if vault is None:
        found = (
            f"No key encrypts credentials; {stored} are stored."
            if stored
            else "No key encrypts credentials, so none can be stored."
        )
        yield (problem if stored else warning)("key", found, _NEW_KEY)
        return
    rows = await data_key_rows(team, vault)
    foreign = sorted({row.master for row in rows.keys if not vault.has_master(row.master)})
    for name in foreign:
        fix = f"Put that key behind the newest in {ENCRYPTION_KEY}, then run `noetl key rotate`."
        yield problem(
            "key", f"Credentials are sealed with the master key {name}, which this process does not have.", fix
        )
    if not foreign:
        yield ok("key", f"the master key {rows.master} opens {stored} stored credentials")
