"""Hides calls of the hidden tool from the clients of each format that has it."""

from collections.abc import Mapping

from ctx_hooks.addons.retrieval.hidden_calls import chat, listed
from ctx_hooks.addons.retrieval.hidden_calls.answers import Answers
from ctx_hooks.formats import Format

FORMS: Mapping[Format, type[Answers]] = {form.format: form for form in (chat.FORM, *listed.FORMS)}
"""Google's format is absent: LiteLLM has no call that could repeat a request of it."""
