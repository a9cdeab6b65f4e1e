"""A failed attempt's log record says that its deployment needs no cooldown; nothing of the deployment is changed."""

from types import SimpleNamespace

import pytest

from ctx_hooks.litellm_compat import spare_deployment


def test_the_record_of_the_attempt_alone_is_changed():
    deployment = {"id": "one", "cooldown_time": 60}
    parameters = {"model_info": deployment, "metadata": {"a": 1}}
    record = {"litellm_params": parameters}
    spare_deployment({"litellm_logging_obj": SimpleNamespace(model_call_details=record)})
    assert record["litellm_params"]["model_info"] == {"id": "one", "cooldown_time": 0}
    assert record["litellm_params"]["metadata"] == {"a": 1}
    assert deployment == {"id": "one", "cooldown_time": 60}
    assert parameters == {"model_info": deployment, "metadata": {"a": 1}}


@pytest.mark.parametrize("details", [None, {}, {"litellm_params": None}, {"litellm_params": {"model_info": None}}])
def test_a_record_without_a_deployment_is_left_alone(details):
    before = dict(details) if details is not None else None
    spare_deployment({"litellm_logging_obj": SimpleNamespace(model_call_details=details)})
    spare_deployment({})
    assert details == before
