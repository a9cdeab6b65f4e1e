"""A text as the bytes that a store holds: compressed, and encrypted where the operator has a secret; and whose it is.

Whoever has the Redis or the file can write anything there. So a value is opened only where it is what was sealed under this
handle for this tenant: encrypted, by the tag of AES-GCM; unencrypted, by a digest under the tenant's key.
"""

import os
import secrets
import zlib
from hashlib import blake2b
from hmac import compare_digest
from typing import Literal

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

Compression = Literal["zlib", "none"]
LARGEST_TEXT_BYTES = 4_000_000
"""As UTF-8: ten times the largest tool result that a request keeps. A value that would open to more is none of ours: a few
KB can open to gigabytes."""
ZLIB_LEVEL = 1
"""8 MB of recorded tool results become 2.7 times smaller in 160 ms; with level 6 2.9 times, in nearly twice the time."""
PLAIN, ENCRYPTED = b"\x01", b"\x02"
"""The first byte. The byte before the text says how it is compressed."""
_METHODS: dict[Compression, bytes] = {"none": b"n", "zlib": b"z"}
DIGEST_BYTES = 16
NONCE_BYTES = 12
"""Random: after 2³² texts of one tenant two have the same with a probability of 2⁻³² (NIST SP 800-38D, 8.3)."""
SECRET_VARIABLE = "CTX_HOOKS_ARCHIVE_KEY"  # noqa: S105 - the name of the variable, not its value
KEY_BYTES = 32
NAME_BYTES = 16
_FOR_KEY, _FOR_NAME, _FOR_DIGEST, _FOR_CIPHER = (b"ctx_hooks." + use for use in (b"key", b"name", b"digest", b"cipher"))
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
    """Return the name that stores know a tenant by, which does not show its key."""
    return blake2b(key=tenant, digest_size=NAME_BYTES, person=_FOR_NAME).hexdigest()


def fits(text: str) -> bool:
    """Whether a text has LARGEST_TEXT_BYTES at most, at four bytes a character where it is not ASCII: nothing is encoded."""
    return len(text) <= LARGEST_TEXT_BYTES // (1 if text.isascii() else 4)


def sealed(text: str, tenant: bytes, handle: str, compress: Compression, secret: bytes) -> bytes:
    """Return what is stored of a text.

    Args:
        text: what was cut; one that does not fit would not open.
        tenant: the tenant's key.
        handle: the text's handle; it opens under no other.
        compress: how.
        secret: the operator's; b"" leaves it unencrypted.
    """
    plain = text.encode("utf-8", "surrogatepass")
    body = _METHODS[compress] + (zlib.compress(plain, ZLIB_LEVEL) if compress == "zlib" else plain)
    if not secret:
        return PLAIN + _digest(body, tenant, handle) + body
    nonce = secrets.token_bytes(NONCE_BYTES)
    return ENCRYPTED + nonce + _cipher(tenant, secret).encrypt(nonce, body, handle.encode("ascii"))


def opened(value: bytes, tenant: bytes, handle: str, secret: bytes) -> str | None:
    """Return the text that was sealed, None for a value that is broken, or of another tenant, handle or secret."""
    try:
        body = _body(value[:1], value[1:], tenant, handle, secret)
        return _plain(body[:1], body[1:]).decode("utf-8", "surrogatepass")
    except (InvalidTag, ValueError, zlib.error, EOFError):  # what else was there is none of ours
        return None


def _body(kind: bytes, rest: bytes, tenant: bytes, handle: str, secret: bytes) -> bytes:
    if secret and kind == ENCRYPTED:
        return _cipher(tenant, secret).decrypt(rest[:NONCE_BYTES], rest[NONCE_BYTES:], handle.encode("ascii"))
    digest, body = rest[:DIGEST_BYTES], rest[DIGEST_BYTES:]
    if secret or kind != PLAIN or not compare_digest(digest, _digest(body, tenant, handle)):
        raise ValueError("not sealed for this tenant, handle and secret")
    return body


def _digest(body: bytes, tenant: bytes, handle: str) -> bytes:
    digest = blake2b(handle.encode("ascii"), key=tenant, digest_size=DIGEST_BYTES, person=_FOR_DIGEST)
    digest.update(body)
    return digest.digest()


def _cipher(tenant: bytes, secret: bytes) -> AESGCM:
    """Return the cipher of a tenant: a key of its own, so that no value of another opens."""
    return AESGCM(blake2b(tenant + secret, digest_size=32, person=_FOR_CIPHER).digest())


def _plain(method: bytes, body: bytes) -> bytes:
    """Return the bytes before compression; raises ValueError for what is none, or is too large."""
    if method == _METHODS["none"]:
        return body
    if method != _METHODS["zlib"]:
        raise ValueError("no method of ours")
    stream = zlib.decompressobj()
    plain = stream.decompress(body, LARGEST_TEXT_BYTES)
    if not stream.eof:
        raise ValueError("more than a text may have, or not all of it")
    return plain
