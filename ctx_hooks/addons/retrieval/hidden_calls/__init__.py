"""How calls of the hidden tool are kept from the clients of each format that has it: one module a format."""

from collections.abc import Mapping

from ctx_hooks.addons.retrieval.hidden_calls import chat, messages, responses
from ctx_hooks.addons.retrieval.hidden_calls.answers import AnswerForm
from ctx_hooks.conversation.model import Format

FORMS: Mapping[Format, AnswerForm] = {form.format: form for form in (chat.FORM, messages.FORM, responses.FORM)}
"""Google's format is none of them: LiteLLM has no call by which a request of it could be made again."""
