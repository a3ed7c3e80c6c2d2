"""URLs of requests, sent as they are written."""

from __future__ import annotations

import re

from yarl import URL

_ENCODED = re.compile(r"(?:[!#$&'()*+,\-./0-9:;=?@A-Z\[\]_a-z~]|%[0-9A-Fa-f]{2})+")

_DOTTED = re.compile(r"(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}")


def parsed(text: str, base: URL | None = None) -> URL:
    """Return a URL, absolute or relative to another one. Raises ValueError."""
    text = text.strip()
    url = URL(text, encoded=_ENCODED.fullmatch(text) is not None)  # a signed URL must not be changed
    url = base.join(url) if base is not None else url
    if url.scheme not in ("http", "https"):
        raise ValueError(f"the URL {text!r} does not begin with http:// or https://")
    host = url.host
    if not host:
        raise ValueError(f"the URL {text!r} names no host")
    if host.replace(".", "").isdigit() and not _DOTTED.fullmatch(host):  # each library would read it in its own way
        raise ValueError(f"{host!r} is no address: write it as four numbers, such as 192.0.2.1")
    return url
