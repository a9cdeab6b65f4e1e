"""The digits of a session: the same in each of its requests, in every process."""

from strategies import FIELDS, every_format, spoken

from ctx_hooks.litellm_compat.call import Call
from ctx_hooks.litellm_compat.identity import with_request_id


def request_of(fmt, text, **fields):
    later = [spoken(fmt, "assistant", "Yes."), spoken(fmt, "user", "And now?")]
    return {"model": "gpt", FIELDS[fmt]: [spoken(fmt, "user", text), *later], "metadata": {}, **fields}


@every_format
def test_a_session_lies_where_its_tenant_and_its_beginning_put_it_in_each_of_its_requests(fmt):
    first = request_of(fmt, "Mend the test.")
    longer = {**first, FIELDS[fmt]: [*first[FIELDS[fmt]], spoken(fmt, "user", "Again.")]}
    assert Call(first).session_digits == Call(longer).session_digits
    assert Call(first).session_digits != Call(request_of(fmt, "Mend the tests.")).session_digits
    translated = {**with_request_id(first), FIELDS[fmt]: [spoken(fmt, "user", "What is left of it")]}
    assert Call(translated).session_digits == Call(first).session_digits


@every_format
def test_sessions_that_begin_with_the_same_instructions_are_told_apart_by_what_is_asked(fmt):
    def digits(task, *later):
        items = [spoken(fmt, "user", text) for text in ("Rules of the project. " * 300, task)]
        answers = [spoken(fmt, "assistant", "Yes."), *(spoken(fmt, "user", text) for text in later)] if later else []
        return Call({"model": "gpt", FIELDS[fmt]: [*items, *answers], "metadata": {}}).session_digits

    assert digits("Mend the test.") == digits("Mend the test.", "And now?") == digits("Mend the test.", "Again.")
    assert digits("Mend the test.") != digits("Write the page.")
