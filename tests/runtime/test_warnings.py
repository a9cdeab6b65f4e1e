"""What is wrong is said once, however many requests bring it, and said again when it changes; no exception's text is."""

import errno
import logging
import re
from pathlib import Path

import pytest

import ctx_hooks
from ctx_hooks.litellm_compat.errors import failing_open
from ctx_hooks.policy.settings import Policy
from ctx_hooks.runtime.warnings import MOST_TRACEBACKS, REMEMBERED, forget_warnings
from ctx_hooks.tokens.budget import window_of


@pytest.fixture(autouse=True)
def _nothing_said_yet():
    forget_warnings()
    yield
    forget_warnings()


def test_a_nonsense_window_is_told_once(caplog):
    for _ in range(5):
        assert window_of(Policy(), "large", 8_000).tokens == 8_000
    assert caplog.text.count("max_input_tokens is no window") == 1


def test_every_line_of_the_package_passes_the_filter_that_takes_the_text_of_exceptions():
    """A logger's filter does not see what is logged to one below it, or to the root."""
    text = "".join(path.read_text(encoding="utf-8") for path in Path(ctx_hooks.__file__).parent.rglob("*.py"))
    assert set(re.findall(r"^logger = (.*)$", text, re.MULTILINE)) == {'logging.getLogger("ctx_hooks")'}


@pytest.mark.parametrize("level", [logging.DEBUG, logging.WARNING])
def test_an_exception_is_told_by_name_and_code_without_its_text_or_that_of_the_error_it_came_with(level, caplog):
    name = "the secret"
    caplog.set_level(logging.DEBUG, "ctx_hooks")

    def number_of(text):
        try:
            return int(text)
        except ValueError:
            return {}[text]

    with pytest.raises(KeyError, match=name) as failed:
        number_of(name)
    assert name in str(failed.value.__context__)
    logging.getLogger("ctx_hooks").log(level, "the step failed", exc_info=failed.value)
    assert caplog.text.splitlines()[-1] == "KeyError"
    assert "in number_of" in caplog.text
    assert "secret" not in caplog.text


def test_of_a_failed_system_call_the_systems_own_text_is_told(caplog):
    logging.getLogger("ctx_hooks").warning("no place", exc_info=OSError(errno.ENOSPC, "a secret", "/a/secret"))
    assert caplog.text.rstrip().endswith("OSError: No space left on device")


def told_in(caplog):
    return [record.getMessage() for record in caplog.records if record.name == "ctx_hooks"]


def test_fault_of_each_request_is_logged_ten_times(caplog):
    for number in range(100):
        with failing_open("sends a conversation without what was retrieved for it"):
            raise KeyError(f"a caller's word {number}")
    assert len(told_in(caplog)) == MOST_TRACEBACKS


def test_warnings_of_ever_new_names_are_bounded(caplog):
    for number in range(2 * REMEMBERED):
        assert window_of(Policy(), f"large {number}", 8_000).tokens == 8_000
    assert len(told_in(caplog)) == REMEMBERED
