"""A configuration that lists the plugin where it has no effect is told so when the proxy starts."""

from __future__ import annotations

from configurations import PLUGIN, configuration
from proxies import Proxy


def test_a_list_that_has_no_effect_is_warned_of(provider):
    names = ("success_callback", "failure_callback")
    settings = {name: [PLUGIN] for name in names}
    with Proxy(configuration(provider.url, litellm_settings=settings)) as proxy:
        for name in names:
            proxy.wait_for_log(f"in litellm_settings.{name} ctx_hooks has no effect")


def test_the_right_list_beside_another_is_not_warned_of(provider):
    settings = {"success_callback": [PLUGIN], "callbacks": [PLUGIN]}
    with Proxy(configuration(provider.url, litellm_settings=settings)) as proxy:
        assert "has no effect" not in proxy.log()
