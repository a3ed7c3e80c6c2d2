"""Resolve credentials for the tasks of one work item, on the worker only.

They are used by `auth`, and by templates that read `keychain`.

An entry of the playbook's `keychain` is the stored credential of its name, or of the name in its `credential`, overlaid
with its own fields, which may be templates over `workload` and other entries. An entry with a token server becomes the
server's token. An entry with a `map` has a field for each secret that it names, and each is a stored credential. A name
that is not declared is a stored credential. An entry that cannot be found is left out of what templates see: reading it
is an error that names it. Tested in tests/unit/worker/secrets/test_keychain.py.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final

from noetl.dsl.tree.playbook import Keychain
from noetl.engine.tasks.render import Names, Renderer, RenderError
from noetl.model.errors import CredentialUnavailable
from noetl.worker.cooperative import Cooperation
from noetl.worker.secrets.oauth2 import Tokens, token_url
from noetl.worker.secrets.redact import Secrets

Resolve = Callable[[str], Awaitable[Mapping[str, Any]]]
_ABOUT: Final = frozenset({"name", "kind", "credential", "auth", "auto_renew"})
_SHARING: Final = frozenset({"local", "global", "catalog", "shared"})
_SHORT: Final = re.compile(r"(?:^|/)secrets/([^/]+)")
_WITH_TOKEN: Final = ("oauth2", "oauth2_client_credentials", "client_credentials")


class KeyRing:
    """The credentials that one work item may use."""

    def __init__(
        self,
        declared: Iterable[Keychain],
        names: Mapping[str, Any],
        at: int,
        resolve: Resolve,
        tokens: Tokens,
        secrets: Secrets,
        cooperation: Cooperation,
    ) -> None:
        self._declared = {entry.name: entry for entry in declared}
        self._names = names
        self._at = at
        self._resolve = resolve
        self._tokens = tokens
        self._secrets = secrets
        self._cooperation = cooperation

    async def get(self, name: str, *, fresh: bool = False) -> Mapping[str, Any]:
        """Resolve and mask a credential. Raises KeyError and CredentialUnavailable."""
        return await self._get(name, (), fresh)

    async def renew(self, name: str) -> Mapping[str, Any] | None:
        """Fetch a new token after a refusal; None if it is not from a token server."""
        entry = await self._entry(name, ())
        return await self.get(name, fresh=True) if _has_server(entry) else None

    async def auth(self, given: Any) -> Any:
        """Resolve a task's `auth` if it names a stored credential; else return it as is."""
        if not isinstance(given, Mapping) or not isinstance(given.get("credential"), str):
            return given
        own = {name: value for name, value in given.items() if name not in ("credential", "type", "kind")}
        try:
            return {**await self.get(given["credential"]), **own}
        except KeyError as error:
            raise CredentialUnavailable(f"there is no credential named {error}") from None

    async def read(self, reads: Iterable[tuple[str | int, ...]]) -> dict[str, Mapping[str, Any]]:
        """Return the declared entries that templates read, with their values."""
        paths = [path for path in reads if path[0] == "keychain"]
        whole = any(len(path) == 1 for path in paths)
        names = {path[1] for path in paths if len(path) > 1}
        found: dict[str, Mapping[str, Any]] = {}
        for name in self._declared:
            if whole or name in names:
                try:
                    found[name] = await self.get(name)
                except KeyError:
                    continue
        return found

    async def _get(self, name: str, asking: tuple[str, ...], fresh: bool = False) -> Mapping[str, Any]:
        entry = await self._entry(name, asking)
        self._secrets.learn(name, entry)
        if not _has_server(entry):
            return entry
        token = await self._tokens.get(entry, fresh=fresh)
        self._secrets.learn(name, {"token": token["token"], **token})
        return token

    async def _entry(self, name: str, asking: tuple[str, ...]) -> dict[str, Any]:
        """Return an entry with its fields, before a token is fetched."""
        declared = self._declared.get(name)
        if declared is None:
            return dict(await self._resolve(name))
        if name in asking:
            raise CredentialUnavailable(
                f"entries of `keychain` read each other in a circle: {', '.join(asking)}, {name}"
            )
        fields = {key: value.data for key, value in declared.fields.items()}
        rendered = await self._rendered(name, fields, (*asking, name))
        if isinstance(rendered.get("map"), Mapping) and str(rendered.get("kind", "")).startswith("secret"):
            return await self._mapped(name, rendered["map"])
        own = {key: value for key, value in rendered.items() if key not in _ABOUT}
        if own.get("scope") in _SHARING:
            del own["scope"]
        source = next((rendered[key] for key in ("credential", "auth") if isinstance(rendered.get(key), str)), name)
        try:
            stored = dict(await self._resolve(source))
        except KeyError:
            if source != name or not own.keys() - {"ttl_seconds"}:
                raise
            stored = {}
        found = {**stored, **own}
        if rendered.get("kind") in _WITH_TOKEN:
            found["kind"] = "oauth2"
        return found

    async def _mapped(self, name: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return the secrets that an entry names: `map: {api_key: openai-key}`."""
        found: dict[str, Any] = {}
        for key, secret in wanted.items():
            found[str(key)] = _secret(await self._secret(name, str(secret)))
        return found

    async def _secret(self, name: str, secret: str) -> Mapping[str, Any]:
        """Find a secret by its name, or by the NAME in `projects/…/secrets/NAME/…`."""
        short = _SHORT.search(secret)
        for one in (secret, *([short[1]] if short else [])):
            try:
                return await self._resolve(one)
            except KeyError:
                continue
        raise CredentialUnavailable(
            f"`keychain.{name}` reads the secret `{secret}`, and no stored credential has that name. Secret managers are not "
            "asked yet: keep it with `noetl credential put`, or in the environment as NOETL_CREDENTIAL_NAME."
        )

    async def _rendered(self, name: str, fields: Mapping[str, Any], asking: tuple[str, ...]) -> dict[str, Any]:
        from noetl.engine.plan.plan import reads_of

        others = {str(path[1]) for path in reads_of(fields) if path[0] == "keychain" and len(path) > 1}
        keychain = {other: await self._get(other, asking) for other in others}
        names = Names({**self._names, "keychain": keychain}, (self._names.get("workload") or {},))
        renderer = Renderer(lambda: names, f"keychain:{name}", self._at, {})
        try:
            return await self._cooperation.run(renderer.value, fields, f"keychain.{name}")
        except RenderError as error:
            raise CredentialUnavailable(str(error)) from None


def _secret(found: Mapping[str, Any]) -> Any:
    """Return a secret's value: its `value`, `token` or only field, or else all of it."""
    held = next((found[key] for key in ("value", "token") if key in found), None)
    return held if held is not None else next(iter(found.values())) if len(found) == 1 else dict(found)


def _has_server(entry: Mapping[str, Any]) -> bool:
    """Return whether a credential names a token server and holds no token itself."""
    named = entry.get("kind") == "oauth2" or "token_url" in entry
    return named and token_url(entry) is not None and not (entry.get("token") or entry.get("access_token"))
