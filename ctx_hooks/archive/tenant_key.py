"""The key of a tenant: every handle and every stored text of it depends on this key, and no store holds it."""

from __future__ import annotations

import os
from hashlib import blake2b

SECRET_VARIABLE = "CTX_HOOKS_ARCHIVE_KEY"  # noqa: S105 - the name of the variable, not its value
KEY_BYTES = 32
NAME_BYTES = 16
_FOR_KEY, _FOR_NAME = b"ctx_hooks.key", b"ctx_hooks.name"
"""What a digest is for: one says nothing about another."""


def secret_of_environment() -> bytes:
    """Return the operator's secret, b"" where there is none: texts are then stored unencrypted."""
    return os.environ.get(SECRET_VARIABLE, "").encode("utf-8", "surrogateescape")


def tenant_key(kind: str, identifier: str, secret: bytes) -> bytes:
    """Return the key of a tenant, KEY_BYTES long."""
    short_secret = blake2b(secret, digest_size=KEY_BYTES).digest() if secret else b""  # of any length, which a key is not
    text = f"{kind}:{identifier}".encode("utf-8", "surrogatepass")
    return blake2b(text, key=short_secret, digest_size=KEY_BYTES, person=_FOR_KEY).digest()


def tenant_name(tenant: bytes) -> str:
    """Return the name that stores know a tenant by; its key cannot be told from it."""
    return blake2b(key=tenant, digest_size=NAME_BYTES, person=_FOR_NAME).hexdigest()
