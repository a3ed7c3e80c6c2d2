"""Signed assertions: JSON Web Tokens with an RSA key.

Google exchanges one for an access token; Snowflake takes it itself. Tested in
tests/unit/worker/secrets/managers/test_web.py and tests/unit/worker/secrets/test_storage.py.
"""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from noetl.model.errors import CredentialUnavailable

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey


def rsa_key(pem: str, passphrase: str, whose: str, fix: str) -> RSAPrivateKey:
    """Read a private key in PEM. Raises CredentialUnavailable."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    try:
        key = serialization.load_pem_private_key(pem.encode(), passphrase.encode() if passphrase else None)
    except (ValueError, TypeError):
        raise CredentialUnavailable(f"{whose} has no private key in PEM. {fix}") from None
    if not isinstance(key, rsa.RSAPrivateKey):
        raise CredentialUnavailable(f"the private key of {whose} is no RSA key. {fix}")
    return key


def sign_claims(claims: Mapping[str, Any], key: RSAPrivateKey, key_id: str = "") -> str:
    """Return claims as a token that the key has signed."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import padding

    header = {"alg": "RS256", "typ": "JWT"} | ({"kid": key_id} if key_id else {})
    text = ".".join(_encoded(json.dumps(part, separators=(",", ":")).encode()) for part in (header, claims))
    return f"{text}.{_encoded(key.sign(text.encode(), padding.PKCS1v15(), hashes.SHA256()))}"


def fingerprint(key: RSAPrivateKey) -> str:
    """Return the fingerprint of a public key, as Snowflake shows it."""
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    public = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return f"SHA256:{b64encode(sha256(public).digest()).decode()}"


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()
