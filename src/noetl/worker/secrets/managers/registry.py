"""Secret managers by the name of their provider, each loaded on first use.

A module has `async def read(asked, access)`, which returns a `Found` or raises CredentialUnavailable. A package offers its
own in the entry point group `noetl.secret_managers`. Tested in tests/unit/worker/secrets/managers/.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

from noetl.model.errors import CredentialUnavailable
from noetl.worker.secrets.managers.access import Access, Asked, Found, Read

GROUP: Final = "noetl.secret_managers"
_HERE: Final = "noetl.worker.secrets.managers"
PROVIDERS: Final[Mapping[str, str]] = {
    "env": f"{_HERE}.environment",
    "environment": f"{_HERE}.environment",
    "file": f"{_HERE}.files",
    "files": f"{_HERE}.files",
    "kubernetes": f"{_HERE}.files",
    "docker": f"{_HERE}.files",
    "vault": f"{_HERE}.vault",
    "openbao": f"{_HERE}.vault",
    "aws": f"{_HERE}.aws",
    "google": f"{_HERE}.google",
    "gcp": f"{_HERE}.google",
    "azure": f"{_HERE}.azure",
}
LOCAL: Final = frozenset({"env", "environment", "file", "files", "kubernetes", "docker"})  # of the worker's machine


async def read_secret(provider: str, asked: Asked, access: Access) -> Found:
    """Read a secret from a manager. Raises CredentialUnavailable."""
    found = await _reader(provider)(asked, access)
    access.learn(f"{provider}:{asked.name}", found.value)
    return found


def selected(found: Any, field: str | None, name: str) -> Any:
    """Return a field of a secret that is a map or JSON; all of it without a field."""
    if field is None:
        return found
    held = found
    if isinstance(found, str):
        import msgspec

        try:
            held = msgspec.json.decode(found)
        except msgspec.DecodeError:
            held = None
    if not isinstance(held, Mapping):
        raise CredentialUnavailable(f"the secret `{name}` is no map, so it has no field `{field}`. Remove `field`.")
    if field not in held:
        raise CredentialUnavailable(f"the secret `{name}` has no field `{field}`. Check the name of the field.")
    return held[field]


def _reader(provider: str) -> Read:
    module = PROVIDERS.get(provider) or _added().get(provider)
    if module is None:
        known = ", ".join(f"`{name}`" for name in (*PROVIDERS, *_added()))
        raise CredentialUnavailable(f"there is no secret manager `{provider}`. Use one of {known}.")
    try:
        found: Read = import_module(module).read
    except (ImportError, AttributeError) as error:
        raise CredentialUnavailable(f"the secret manager `{provider}` cannot be loaded: {error}") from None
    return found


def _added() -> dict[str, str]:
    """Return the modules of installed packages by provider."""
    from importlib.metadata import entry_points

    return {entry.name: entry.value for entry in entry_points(group=GROUP) if entry.name not in PROVIDERS}
