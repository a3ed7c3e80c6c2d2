"""Resolve credentials for the tasks of one work item, on the worker only.

They are used by `auth`, and by templates that read `keychain`.

An entry of the playbook's `keychain` is the stored credential of its name, or of the name in its `credential`, overlaid
with its own fields, which may be templates over `workload` and other entries. An entry with a token server becomes the
server's token. An entry of kind `secret_manager` has a field for each secret in its `map`, from its `provider` or else
the stored credentials; kind `http` fetches its fields, `static` has them, and `google_id_token` is a token of a service
account. A name that is not declared is a stored credential. An entry that cannot be found is left out of what templates
see: reading it is an error that names it. Tested in tests/unit/worker/secrets/test_keychain.py.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, NamedTuple

from noetl.dsl.analysis.needed_credentials import STORED
from noetl.dsl.tree.playbook import Keychain
from noetl.engine.tasks.render import Names, Renderer, RenderError
from noetl.model.errors import CredentialUnavailable
from noetl.ports.web import basic
from noetl.worker.cooperative import Cooperation
from noetl.worker.secrets.managers.access import Access, Asked, Found, request
from noetl.worker.secrets.managers.registry import LOCAL, read_secret, selected
from noetl.worker.secrets.oauth2 import Tokens, token_url
from noetl.worker.secrets.redact import Secrets

Resolve = Callable[[str], Awaitable[Mapping[str, Any]]]
_ABOUT: Final = frozenset({"name", "kind", "credential", "auth", "auto_renew"})
_SHARING: Final = frozenset({"local", "global", "catalog", "shared"})
_SHORT: Final = re.compile(r"(?:^|/)secrets/([^/]+)")
_WITH_TOKEN: Final = ("oauth2", "oauth2_client_credentials", "client_credentials")


class Users(NamedTuple):
    """The execution and the playbook that a credential is resolved for."""

    execution_id: str
    path: str

    def of(self, scope: str) -> tuple[str, bool]:
        """Return which users share an access token, and whether on all workers."""
        if scope == "local":
            return f"execution {self.execution_id}", False
        if scope == "shared":
            return f"execution {self.execution_id}", True
        return (f"playbook {self.path}", True) if scope == "catalog" else ("", True)


NO_USERS: Final = Users("", "")


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
        access: Access,
        users: Users = NO_USERS,
    ) -> None:
        self._declared = {entry.name: entry for entry in declared}
        self._names = names
        self._at = at
        self._resolve = resolve
        self._tokens = tokens
        self._secrets = secrets
        self._cooperation = cooperation
        self._access = access
        self._users = users
        self._timed: set[str] = set()  # entries whose values are cached

    async def get(self, name: str, *, fresh: bool = False) -> Mapping[str, Any]:
        """Resolve and mask a credential. Raises KeyError and CredentialUnavailable."""
        return await self._get(name, (), fresh)

    async def renew(self, name: str) -> Mapping[str, Any] | None:
        """Fetch a new token or value after a refusal; None if none was cached."""
        entry = await self._entry(name, ())
        if not (_has_server(entry) or name in self._timed) or entry.get("auto_renew") is False:
            return None
        return await self.get(name, fresh=True)

    async def auth(self, given: Any) -> Any:
        """Resolve a task's `auth` that names credentials; else return it as is.

        Forms: `{credential: NAME, …}` with fields to add, `{source: PROVIDER, key: NAME}`, and a map of such maps by alias.
        """
        if not isinstance(given, Mapping):
            return given
        if given and all(_names_one(one) for one in given.values()):
            return {str(alias): await self.auth(one) for alias, one in given.items()}
        if isinstance(given.get("source"), str) and isinstance(given.get("key"), str):
            return await self._from_source(given)
        if not isinstance(given.get("credential"), str):
            return given
        own = {name: value for name, value in given.items() if name not in ("credential", "type", "kind")}
        try:
            return {**await self.get(given["credential"]), **own}
        except KeyError as error:
            raise CredentialUnavailable(f"there is no credential named {error}") from None

    async def secret(self, provider: str, asked: Asked, field: str | None = None) -> Found:
        """Read a secret of a provider, and mask it. Raises CredentialUnavailable."""
        if provider not in STORED:
            found = await read_secret(provider, asked, self._access)
            value = selected(found.value, field, asked.name)
        else:
            try:
                held = await self.get(asked.name)
            except KeyError:
                raise CredentialUnavailable(
                    f"there is no credential `{asked.name}`. Store it with `noetl credential put {asked.name}`."
                ) from None
            found, value = Found(None), _secret(held) if field is None else selected(held, field, asked.name)
        self._secrets.learn(asked.name, value if isinstance(value, Mapping) else {"secret": value})
        return Found(value, found.version)

    async def manager_credential(self, name: Any) -> Mapping[str, Any]:
        """Return the credential that signs in to a manager; empty without a name."""
        if not isinstance(name, str):
            return name if isinstance(name, Mapping) else {}
        try:
            return await self.get(name)
        except KeyError:
            raise CredentialUnavailable(f"there is no credential named `{name}`") from None

    async def _from_source(self, given: Mapping[str, Any]) -> Mapping[str, Any]:
        provider = str(given["source"])
        if provider in STORED:
            try:
                return await self.get(given["key"])
            except KeyError:
                raise CredentialUnavailable(f"there is no credential named `{given['key']}`") from None
        asked = _asked(given["key"], given, await self.manager_credential(given.get("auth")))
        return _as_map((await self.secret(provider, asked, _text(given.get("field")))).value)

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
        entry = await self._entry(name, asking, fresh)
        self._secrets.learn(name, entry)
        if not _has_server(entry):
            return entry
        scope = self._declared[name].fields.get("scope") if name in self._declared else None
        users, is_shared = self._users.of(str(scope.data) if scope is not None else "")
        token = await self._tokens.get(entry, fresh=fresh, users=users, is_shared=is_shared)
        self._secrets.learn(name, {"token": token["token"], **token})
        return token

    async def _entry(self, name: str, asking: tuple[str, ...], fresh: bool = False) -> dict[str, Any]:
        """Return an entry with its fields, before a token is fetched."""
        if not name:  # a store of an earlier version may hold one
            raise KeyError(name)
        declared = self._declared.get(name)
        if declared is None:
            return dict(await self._resolve(name))
        if name in asking:
            raise CredentialUnavailable(
                f"entries of `keychain` read each other in a circle: {', '.join(asking)}, {name}"
            )
        fields = {key: value.data for key, value in declared.fields.items()}
        rendered = await self._rendered(name, fields, (*asking, name))
        made = await self._made(name, rendered, fresh)
        if made is not None:
            return made
        own = {key: value for key, value in rendered.items() if key not in _ABOUT}
        if own.get("scope") in _SHARING:
            del own["scope"]
        source = _source(rendered) or name
        try:
            stored = dict(await self._resolve(source))
        except KeyError:
            if source != name or not own.keys() - {"ttl_seconds"}:
                raise
            stored = {}
        found = {**stored, **own}
        if rendered.get("auto_renew") is False:
            found["auto_renew"] = False
        if rendered.get("kind") in _WITH_TOKEN:
            found["kind"] = "oauth2"
        return found

    async def _made(self, name: str, rendered: dict[str, Any], fresh: bool) -> dict[str, Any] | None:
        """Return what an entry of a kind of its own holds; None for stored credentials."""
        kind = str(rendered.get("kind", ""))
        if kind == "static":
            own = {key: value for key, value in rendered.items() if key not in (*_ABOUT, "scope", "ttl_seconds")}
            held = own.get("data", own.get("map"))
            return dict(held) if isinstance(held, Mapping) and len(own) == 1 else own
        if kind.startswith("secret") and (rendered.get("provider") not in (None, *STORED)):
            is_here = rendered["provider"] in LOCAL  # then each worker has its own
            return await (
                self._managed(name, rendered) if is_here else self._read(name, rendered, self._managed, fresh)
            )
        if kind.startswith("secret") and isinstance(rendered.get("map"), Mapping):
            return await self._mapped(name, rendered["map"])
        if kind == "http":
            return await self._read(name, rendered, self._fetched, fresh) if rendered.get("url") else None
        if kind == "google_id_token":
            from noetl.worker.secrets.managers.google import id_token

            audience = rendered.get("audience") or rendered.get("target_audience")
            if not audience:
                raise CredentialUnavailable(f"`keychain.{name}` has no `audience`. Set it to the URL of the service.")
            credential = await self.manager_credential(_source(rendered))
            return {"token": (await id_token(credential, str(audience), self._access))["token"]}
        return None

    async def _read(
        self, name: str, rendered: dict[str, Any], read: Callable[..., Awaitable[dict[str, Any]]], fresh: bool
    ) -> dict[str, Any]:
        """Return what an entry reads elsewhere, kept for its `ttl_seconds`.

        The credential that it signs in with is part of what it is kept by, so a changed one reads again. Without one, a
        manager knows the worker by its machine, and the value is for this worker only.
        """
        ttl_s = rendered.get("ttl_seconds")
        if not isinstance(ttl_s, int | float) or not ttl_s > 0:
            return await read(name, rendered)
        if rendered.get("auto_renew") is not False:
            self._timed.add(name)
        credential = dict(await self.manager_credential(_source(rendered)))
        users, is_shared = self._users.of(str(rendered.get("scope") or ""))
        is_shared &= bool(credential) or rendered["kind"] == "http"
        about = [rendered, credential]
        return dict(
            await self._tokens.value(
                about, lambda: read(name, rendered), ttl_s, fresh=fresh, users=users, is_shared=is_shared
            )
        )

    async def _managed(self, name: str, rendered: Mapping[str, Any]) -> dict[str, Any]:
        """Return the secrets of a manager that an entry names, in `map` or `secret`."""
        credential, provider = await self.manager_credential(_source(rendered)), str(rendered["provider"])
        field = _text(rendered.get("field"))
        if isinstance(rendered.get("map"), Mapping):
            found = {}
            for key, secret in rendered["map"].items():
                stored = await self._stored_secret(str(secret))  # so that a local run needs no manager
                if stored is not None:
                    found[str(key)] = _secret(stored)
                    continue
                found[str(key)] = (await self.secret(provider, _asked(str(secret), rendered, credential), field)).value
            return found
        secret = rendered.get("secret") or rendered.get("secret_name")
        if not secret:
            raise CredentialUnavailable(
                f"`keychain.{name}` names no secret. Set `secret`, or `map` with one per field."
            )
        return _as_map((await self.secret(provider, _asked(str(secret), rendered, credential), field)).value)

    async def _fetched(self, name: str, rendered: Mapping[str, Any]) -> dict[str, Any]:
        """Return the JSON object that an entry of kind `http` fetches."""
        import json

        given = await self.manager_credential(_source(rendered))
        headers = {str(key): str(value) for key, value in (rendered.get("headers") or {}).items()}
        token = given.get("token") or given.get("access_token")
        if token:
            headers["Authorization"] = f"{given.get('scheme', 'Bearer')} {token}"
        elif given.get("username"):
            headers["Authorization"] = basic(str(given["username"]), str(given.get("password") or ""))
        body = rendered.get("body") if rendered.get("body") is not None else rendered.get("json")
        content = None if body is None else json.dumps(body).encode()
        headers |= {} if content is None else {"Content-Type": "application/json"}
        method = str(rendered.get("method") or ("GET" if content is None else "POST")).upper()
        what = f"`keychain.{name}`: no value from {rendered['url']}"
        answer = await self._access.ask(request(str(rendered["url"]), headers, method, content), what)
        field = _text(rendered.get("field"))
        return _as_map(selected(answer, field, str(rendered["url"])))

    async def _mapped(self, name: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
        """Return the secrets that an entry names: `map: {api_key: openai-key}`."""
        found: dict[str, Any] = {}
        for key, secret in wanted.items():
            found[str(key)] = _secret(await self._secret(name, str(secret)))
        return found

    async def _secret(self, name: str, secret: str) -> Mapping[str, Any]:
        found = await self._stored_secret(secret)
        if found is not None:
            return found
        raise CredentialUnavailable(
            f"`keychain.{name}` reads the secret `{secret}`, and no stored credential has that name. Name the "
            "`provider` of its secret manager, or keep it with `noetl credential put`."
        )

    async def _stored_secret(self, secret: str) -> Mapping[str, Any] | None:
        """Find a secret by its name, or by the NAME in `projects/…/secrets/NAME/…`."""
        short = _SHORT.search(secret)
        for one in (secret, *([short[1]] if short else [])):
            try:
                return await self._resolve(one)
            except KeyError:
                continue
        return None

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


def _source(rendered: Mapping[str, Any]) -> str | None:
    """Return the name of the credential behind an entry."""
    return next((rendered[key] for key in ("credential", "auth") if isinstance(rendered.get(key), str)), None)


def _names_one(given: Any) -> bool:
    """Return whether a map names a credential: one alias of several."""
    if not isinstance(given, Mapping):
        return False
    return isinstance(given.get("credential"), str) or (
        isinstance(given.get("source"), str) and isinstance(given.get("key"), str)
    )


def _asked(name: str, given: Mapping[str, Any], credential: Mapping[str, Any]) -> Asked:
    project = given.get("project") or given.get("project_id")
    return Asked(
        name,
        _text(given.get("version")),
        _text(project),
        _text(given.get("region")),
        _text(given.get("url")),
        credential,
    )


def _text(value: Any) -> str | None:
    return None if value is None else str(value)


def _as_map(value: Any) -> dict[str, Any]:
    """Return a secret as fields: a map, a JSON object, or else the field `value`."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        import json

        try:
            value = json.loads(value)
        except ValueError:
            return {"value": value}
    return dict(value) if isinstance(value, Mapping) else {"value": value}
