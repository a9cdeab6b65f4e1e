"""What LiteLLM does otherwise from a version on, with the plugin and without, where nothing else tells."""

import inspect
from importlib.metadata import version

import litellm

LITELLM = tuple(int(number) for number in version("litellm").split(".")[:2])
TELLS_TRANSLATED_OVERFLOWS = LITELLM >= (1, 106)
"""Whether an overflow inside a stream that LiteLLM translates is an error to the Router."""
STATES_STREAMED_USAGE = LITELLM >= (1, 108)
"""Whether streams of Google's route to other providers state their usage; before, LiteLLM did not ask these for it."""
CONTINUES_CHAT = "enable_mid_stream_fallback_continuation" in inspect.signature(litellm.Router.__init__).parameters
"""Whether the Router can go on with a broken chat stream at a fallback."""
ENDS_WITH_DONE = LITELLM < (1, 110)
"""Whether a stream of `/v1/responses` ends with `[DONE]`, which OpenAI's own does not."""
