"""Provider `file`: a secret that Docker or Kubernetes mounts as a file.

A name has one or two parts (`token`, `orders-db/password`) below a folder of `NOETL_SECRETS_FOLDERS`; the token of a pod's
own service account has more. Tested in tests/unit/worker/secrets/managers/test_local.py.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from noetl.model.errors import CredentialUnavailable
from noetl.worker.secrets.managers.access import Access, Asked, Found

_MOST: Final = 1 << 20  # bytes of a file


async def read(asked: Asked, access: Access) -> Found:
    parts = asked.name.split("/")
    if not 1 <= len(parts) <= 2 or any(not part or part.startswith(".") or "\\" in part for part in parts):
        raise CredentialUnavailable(f"`{asked.name}` is no name of a secret file. Write `name` or `folder/name`.")
    found = await asyncio.to_thread(_first, access.folders, parts)
    if found is None:
        where = ", ".join(access.folders) or "no folder"
        raise CredentialUnavailable(
            f"there is no secret file `{asked.name}` in {where}. Mount it there, or set NOETL_SECRETS_FOLDERS."
        )
    return Found(found)


def _first(folders: tuple[str, ...], parts: list[str]) -> str | None:
    for folder in folders:
        root = Path(folder).resolve()
        path = root.joinpath(*parts).resolve()  # Kubernetes mounts links within the folder
        if not path.is_relative_to(root) or not path.is_file():
            continue
        try:
            with path.open("rb") as file:
                content = file.read(_MOST + 1)
            if len(content) > _MOST:
                raise CredentialUnavailable(f"the secret file `{'/'.join(parts)}` has more than {_MOST:,} bytes")
            return content.decode().removesuffix("\n")
        except OSError as error:
            raise CredentialUnavailable(
                f"the secret file `{'/'.join(parts)}` cannot be read: {error.strerror}"
            ) from None
        except UnicodeDecodeError:
            raise CredentialUnavailable(f"the secret file `{'/'.join(parts)}` is no text") from None
    return None
