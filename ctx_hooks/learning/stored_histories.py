"""The provider tokens of histories that providers keep, from the usage of the answer that a request continues.

This process knows them, and the other workers through LiteLLM's Redis if it has one. An unknown size costs one refusal.
"""

from collections import OrderedDict
from contextlib import suppress
from functools import partial
from hashlib import blake2b

from ctx_hooks.learning.attempts import Attempt
from ctx_hooks.store.shared_store import SharedStore, UnavailableError
from ctx_hooks.tokens.units import ProviderTokens

MOST_HISTORIES = 100_000
"""At most 26 MB (measured); the oldest are forgotten first."""
KEY_PREFIX = "ctx_hooks:history:"
KEPT_SECONDS = 30 * 24 * 3600
"""OpenAI keeps a response for 30 days."""
DIGEST_BYTES = 16
MOST_TOKENS = 100_000_000
"""Anyone with access to the Redis can write anything there: a larger figure is ignored."""
MOST_BYTES = 20
WRITE = f"redis.call('SET', KEYS[1], ARGV[1], 'EX', {KEPT_SECONDS}) return 1"


def stored_tokens_after(attempt: Attempt, total_tokens: ProviderTokens) -> ProviderTokens:
    """Return the tokens of a history with the answer to `attempt`, whose usage states `total_tokens` for input and output.

    Truncation shortens only the model's input. The stored history keeps its length: later requests have to ask again.
    """
    return max(total_tokens, attempt.known.window.tokens) if attempt.truncates else total_tokens


class StoredHistories:
    """Provider tokens by tenant and id of a response. Used on the event loop only."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._tokens: OrderedDict[bytes, ProviderTokens] = OrderedDict()

    async def tokens_of(self, tenant: str, response_id: str) -> ProviderTokens:
        """Return the provider tokens of the history up to and including a response, 0 if unknown."""
        key = _key(tenant, response_id)
        if key not in self._tokens and self._store.is_shared:
            with suppress(UnavailableError):  # then it is not known
                await self._store.briefly(partial(self._read, tenant, key), key)
        return self._tokens.get(key, ProviderTokens(0))

    async def note(self, tenant: str, response_id: str, tokens: ProviderTokens) -> None:
        """Note the provider tokens of a history including its newest response."""
        if response_id and tokens > 0:
            key = _key(tenant, response_id)
            self._remember(key, tokens)
            if self._store.is_shared:
                with suppress(UnavailableError):  # then other workers do not know it
                    await self._store.briefly(partial(self._store.run, WRITE, _shared_key(tenant, key), [tokens]))

    async def _read(self, tenant: str, key: bytes) -> None:
        found = (await self._store.read(_shared_key(tenant, key), MOST_BYTES)).decode("ascii", "replace")
        if found.isascii() and found.isdecimal() and 0 < int(found) <= MOST_TOKENS:
            self._remember(key, ProviderTokens(int(found)))

    def _remember(self, key: bytes, tokens: ProviderTokens) -> None:
        self._tokens[key] = tokens
        self._tokens.move_to_end(key)
        if len(self._tokens) > MOST_HISTORIES:
            self._tokens.popitem(last=False)


def _key(tenant: str, response_id: str) -> bytes:
    return blake2b(f"{tenant}\n{response_id}".encode("utf-8", "replace"), digest_size=DIGEST_BYTES).digest()


def _shared_key(tenant: str, key: bytes) -> str:
    """Return the key in Redis, which names the tenant's digest: an operator can erase all keys of a tenant."""
    return f"{KEY_PREFIX}{tenant}:{key.hex()}"
