"""A failed attempt's log record says that its deployment needs no cooldown; nothing of the deployment is changed."""

from types import SimpleNamespace

import pytest

from ctx_hooks.litellm_compat import spare_deployment


@pytest.mark.parametrize("details", [None, {}, {"litellm_params": None}, {"litellm_params": {"model_info": None}}])
def test_a_record_without_a_deployment_is_left_alone(details):
    before = dict(details) if details is not None else None
    spare_deployment({"litellm_logging_obj": SimpleNamespace(model_call_details=details)})
    spare_deployment({})
    assert details == before
