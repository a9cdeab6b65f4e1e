"""Everything that the public functions raise."""


class CtxHooksError(Exception):
    """The base of every exception of this package."""


class ArgumentError(CtxHooksError, ValueError):
    """An argument has a value that the function does not take; the text says what it takes."""


class MalformedConversationError(CtxHooksError, ValueError):
    """The messages are not a conversation: not a list, an item that is no mapping, or nested too deeply."""
