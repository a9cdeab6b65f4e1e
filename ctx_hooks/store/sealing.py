"""The stored bytes of a text: compressed, and sealed with AES-GCM for one tenant under one handle.

Without an operator's secret, the key is derived from the tenant's id: anyone who knows the id can then read the text.
"""

import os
import secrets
import zlib
from hashlib import blake2b

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

LARGEST_TEXT_BYTES = 4_000_000
"""As UTF-8. A value that would open to more is not ours: a few KB can open to gigabytes."""
ZLIB_LEVEL = 1
NONCE_BYTES = 12
"""Random: after 2³² texts of one tenant two have the same with a probability of 2⁻³² (NIST SP 800-38D, 8.3)."""
SECRET_VARIABLE = "CTX_HOOKS_ARCHIVE_KEY"  # noqa: S105 - the name of the variable, not its value
KEY_BYTES, NAME_BYTES = 32, 16
_FOR_KEY, _FOR_NAME, _FOR_CIPHER = (b"ctx_hooks." + use for use in (b"key", b"name", b"cipher"))
"""The purpose of a digest: digests for different purposes reveal nothing about each other."""


def secret_of_environment() -> bytes:
    """Return the operator's secret, b"" if there is none."""
    return os.environ.get(SECRET_VARIABLE, "").encode("utf-8", "surrogateescape")


def tenant_key(kind: str, identifier: str, secret: bytes) -> bytes:
    """Return the key of a tenant, KEY_BYTES long."""
    key = blake2b(secret, digest_size=KEY_BYTES).digest() if secret else b""  # a secret of any length becomes a key
    text = f"{kind}:{identifier}".encode("utf-8", "surrogatepass")
    return blake2b(text, key=key, digest_size=KEY_BYTES, person=_FOR_KEY).digest()


def tenant_name(tenant: bytes) -> str:
    """Return a tenant's name for stores, which does not reveal its key."""
    return blake2b(key=tenant, digest_size=NAME_BYTES, person=_FOR_NAME).hexdigest()


def fits(text: str) -> bool:
    """Whether a text has at most LARGEST_TEXT_BYTES, at four bytes a character if it is not ASCII; it encodes nothing."""
    return len(text) <= LARGEST_TEXT_BYTES // (1 if text.isascii() else 4)


def sealed(text: str, tenant: bytes, handle: str, secret: bytes) -> bytes:
    """Return the stored form of a text that `fits`, for a tenant's key, a handle and the operator's secret or b""."""
    nonce, body = secrets.token_bytes(NONCE_BYTES), zlib.compress(text.encode("utf-8", "surrogatepass"), ZLIB_LEVEL)
    return nonce + _cipher(tenant, secret).encrypt(nonce, body, handle.encode("ascii"))


def opened(value: bytes, tenant: bytes, handle: str, secret: bytes) -> str | None:
    """Return the sealed text, None if the value is broken, or has another tenant, handle or secret."""
    stream = zlib.decompressobj()
    try:
        body = _cipher(tenant, secret).decrypt(value[:NONCE_BYTES], value[NONCE_BYTES:], handle.encode("ascii"))
        plain = stream.decompress(body, LARGEST_TEXT_BYTES)
        return plain.decode("utf-8", "surrogatepass") if stream.eof else None
    except (InvalidTag, ValueError, zlib.error):  # any other value is not ours
        return None


def _cipher(tenant: bytes, secret: bytes) -> AESGCM:
    return AESGCM(blake2b(tenant + secret, digest_size=KEY_BYTES, person=_FOR_CIPHER).digest())
