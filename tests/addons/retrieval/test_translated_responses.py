"""Whether answers of the Responses API can go back to their deployment depends on who makes them, and on LiteLLM."""

import pytest

from ctx_hooks.addons.retrieval.further_call import takes_its_items_back


@pytest.mark.parametrize("version", ["1.100.5", "1.103.7"])
def test_before_1_106_a_provider_speaks_the_api_itself_or_takes_nothing_back(version):
    found = {m: takes_its_items_back(m, version) for m in ("openai/gpt-4o", "anthropic/claude", "unheard-of")}
    assert found == {"openai/gpt-4o": True, "anthropic/claude": False, "unheard-of": False}


@pytest.mark.parametrize("version", ["1.106.2", "2.0.0"])
def test_from_1_106_on_what_is_translated_goes_back_too(version):
    assert takes_its_items_back("anthropic/claude", version)


def test_of_a_version_in_an_unknown_form_only_what_needs_no_translation_is_trusted():
    assert not takes_its_items_back("anthropic/claude", "main")
