"""Everything that the public functions raise."""


class CtxHooksError(Exception):
    """The base of every exception of this package."""


class MalformedConversationError(CtxHooksError, ValueError):
    """The messages are not a conversation: not a list, an item that is no mapping, or nested too deeply."""
