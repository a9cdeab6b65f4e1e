"""`ctx-hooks replay` reads what people have, and prints what each policy would have done with it."""

import json

import litellm
import pytest
from proxies import printed_by

from ctx_hooks.cli import main
from ctx_hooks.cli.replay import reading
from ctx_hooks.cli.replay.histories import request_log, sessions, spend_log
from ctx_hooks.cli.replay.reading import Broken, rows_of
from ctx_hooks.cli.replay.recorded import LeftOut, Recorded, Row
from ctx_hooks.cli.replay.sessions import MOST_OPEN, Bill
from ctx_hooks.testing import agent_session

MODEL = "claude-sonnet-4-5-20250929"
BUDGETED = ("--window", "12000", "--model", MODEL)


def written(path, rows):
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return str(path)


def whole_session(turns=40, **fields):
    session = agent_session("openai-chat", turns=turns)
    return {"id": "one", "format": "openai-chat", "model": "gpt-4o", "messages": session["messages"], **fields}


def bodies(turns=12, fmt="openai-chat", **fields):
    """Return the bodies of a client's requests, each longer than the one before."""
    session = agent_session(fmt, turns=turns)
    messages = session["messages"]
    ends = [i for i, m in enumerate(messages) if m["role"] == "assistant" and i]
    return [{**session, "messages": messages[:end], **fields} for end in ends]


def spend_row(body, **columns):
    """Return a row as LiteLLM 1.100 writes it, of which the replay reads these columns."""
    return {
        "request_id": "chatcmpl-1",
        "call_type": "acompletion",
        "api_key": "",
        "spend": 0.01,
        "prompt_tokens": 1_000,
        "completion_tokens": 10,
        "startTime": "2026-11-22 07:52:50.247963+00:00",
        "model": "openai/gpt-4o",
        "model_group": "gpt",
        "metadata": json.dumps({"usage_object": {"prompt_tokens": 1_000, "completion_tokens": 10}}),
        "cache_hit": "None",
        "messages": "{}",
        "response": "{}",
        "proxy_server_request": json.dumps(body),
        "session_id": "",
        "status": "success",
        **columns,
    }


def replayed(capsys, *arguments, status=0):
    assert main(["replay", *map(str, arguments), "--json"]) == status
    return json.loads(capsys.readouterr().out)


def recorded(reader, *rows):
    return list(reader.requests(Row(n, row) for n, row in enumerate(rows, 1)))


# what is printed


def test_policies_stand_side_by_side_and_each_has_its_own_figures(tmp_path, capsys):
    path = written(tmp_path / "sessions.jsonl", [whole_session()])
    found = replayed(capsys, path, *BUDGETED, "--policy", "balanced", "--policy", "reserve: 3000", "--policy", "off")
    policies = found["total"]["policies"]
    assert list(policies) == ["balanced", "reserve: 3000", "off"]
    assert policies["off"] == found["total"]["without"]
    assert policies["off"]["refused"] > 0 == policies["balanced"]["refused"]
    assert policies["balanced"]["compactions"] > 0
    assert policies["balanced"] != policies["reserve: 3000"]
    assert policies["balanced"]["requests"] == policies["off"]["requests"] + policies["off"]["refused"]


def test_the_figures_are_the_sums_over_the_sessions(tmp_path, capsys):
    rows = [whole_session(turns=n, id=f"of {n}") for n in (5, 20, 40)]
    found = [replayed(capsys, written(tmp_path / "one.jsonl", [row]), *BUDGETED)["total"] for row in rows]
    together = replayed(capsys, written(tmp_path / "all.jsonl", rows), *BUDGETED)
    assert together["sessions"] == 3
    for name in Bill.__slots__:
        assert together["total"]["without"][name] == pytest.approx(sum(each["without"][name] for each in found))
        summed = sum(each["policies"]["balanced"][name] for each in found)
        assert together["total"]["policies"]["balanced"][name] == pytest.approx(summed)


def test_a_configuration_gives_models_prices_and_the_policies_of_teams(tmp_path, capsys):
    config = tmp_path / "config.yaml"
    config.write_text(
        "model_list: [{model_name: gpt, litellm_params: {model: openai/own, input_cost_per_token: 0.001},"
        " model_info: {max_input_tokens: 12000}}]\n"
        "callback_settings: {ctx_hooks: {policies: {mild: {extends: gentle}}, teams: {red: {mode: 'off'}}}}\n"
    )
    rows = [spend_row(body) for body in bodies(turns=30)]
    path = written(tmp_path / "log.jsonl", rows)
    found = replayed(capsys, path, "--config", config, "--policy", "mild")
    assert list(found["total"]["policies"]) == ["config", "mild"]
    bill = found["total"]["without"]
    assert bill["dollars"] == pytest.approx(bill["input_tokens"] * 0.001)
    of_red = written(tmp_path / "red.jsonl", [{**row, "team_id": "red"} for row in rows])
    found = replayed(capsys, of_red, "--config", config)
    assert found["total"]["policies"]["config"] == found["total"]["without"]


def test_what_litellm_bills_is_what_is_printed(tmp_path, capsys):
    """Where nothing is compacted, each request costs what LiteLLM makes of the same tokens."""
    path = written(tmp_path / "sessions.jsonl", [whole_session(turns=8)])
    found = replayed(capsys, path, "--model", MODEL)["total"]
    assert found["without"] == found["policies"]["balanced"]
    bill = found["without"]
    assert bill["cached_tokens"] > 0
    cost = litellm.cost_per_token(
        model=MODEL,
        prompt_tokens=bill["input_tokens"],
        cache_read_input_tokens=bill["cached_tokens"],
        cache_creation_input_tokens=bill["input_tokens"] - bill["cached_tokens"],
    )
    assert bill["dollars"] == pytest.approx(sum(cost))


def test_a_model_without_a_price_has_none(tmp_path, capsys):
    found = replayed(capsys, written(tmp_path / "s.jsonl", [whole_session(turns=3, model="nobody/knows-it")]))["total"]
    assert found["without"]["unpriced"] == found["without"]["requests"] > 0
    assert found["without"]["dollars"] == 0


# sessions


def test_requests_of_a_log_without_sessions_are_grouped_by_what_they_begin_with(tmp_path, capsys):
    first, second = bodies(turns=6), bodies(turns=6, fmt="anthropic", model=MODEL)
    mixed = [body for pair in zip(first, second, strict=True) for body in pair]
    found = replayed(capsys, written(tmp_path / "log.jsonl", mixed))
    assert found["sessions"] == 2
    assert found["total"]["without"]["cached_fraction"] > 0.5


def test_a_mark_of_what_to_cache_that_moves_on_is_no_other_message(tmp_path, capsys):
    marked = []
    for body in bodies(turns=6, fmt="anthropic", model=MODEL):
        *before, last = body["messages"]
        content = last["content"] if isinstance(last["content"], list) else [{"type": "text", "text": last["content"]}]
        last = {**last, "content": [*content[:-1], {**content[-1], "cache_control": {"type": "ephemeral"}}]}
        marked.append({**body, "messages": [*before, last]})
    found = replayed(capsys, written(tmp_path / "log.jsonl", marked))
    assert found["sessions"] == 1
    assert found["total"]["without"]["cached_fraction"] > 0.5


def test_two_sessions_that_begin_alike_are_told_apart_by_their_names(tmp_path, capsys):
    rows = [spend_row(body, session_id=name) for name in ("a", "b") for body in bodies(turns=4)]
    found = replayed(capsys, written(tmp_path / "log.jsonl", rows))
    assert found["sessions"] == 2


def test_a_session_stays_open_however_many_names_another_has(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("ctx_hooks.cli.replay.sessions.MOST_OPEN", 2)
    (first, second), others = bodies(turns=2), bodies(turns=12, fmt="anthropic", model=MODEL)
    rows = [spend_row(body, session_id=f"id {n}") for n, body in enumerate([first, *others, second])]
    found = replayed(capsys, written(tmp_path / "log.jsonl", rows))
    assert found["sessions"] == 2


def test_more_sessions_than_can_be_open_are_all_counted(tmp_path, capsys):
    said = [[{"role": "user", "content": f"Question {n}"}] for n in range(MOST_OPEN + 20)]
    found = replayed(capsys, written(tmp_path / "log.jsonl", [{"model": "gpt-4o", "messages": m} for m in said]))
    assert found["sessions"] == found["total"]["without"]["requests"] == MOST_OPEN + 20


# LiteLLM's spend log


@pytest.mark.parametrize("form", ["lines", "array", "pretty", "objects"])
def test_a_spend_log_is_the_same_in_each_form(form, tmp_path, capsys):
    rows = [spend_row(body, session_id='it\'s "one",\nof two lines') for body in bodies(turns=6)]
    path = tmp_path / "log"
    if form == "objects":  # as `row_to_json` gives columns of JSON
        rows = [{**r, **{n: json.loads(r[n]) for n in ("metadata", "proxy_server_request")}} for r in rows]
    if form in ("array", "pretty"):
        path.write_text(json.dumps(rows, indent=2 if form == "pretty" else None))
    else:
        written(path, rows)
    found = replayed(capsys, path)
    assert found["kinds"] == {"LiteLLM spend log": 1}
    assert found["broken"] == 0
    assert found["sessions"] == 1
    assert found["total"]["recorded"]["requests"] == len(rows)
    assert found["total"]["recorded"]["dollars"] == pytest.approx(0.01 * len(rows))


@pytest.mark.parametrize(("body", "reason"), [
    ({}, spend_log.NO_TEXTS), ({"messages": [{"role": "user", "content": "redacted-by-litellm"}]}, spend_log.NO_TEXTS),
    ({"messages": [{"role": "user", "content": "a (litellm_truncated skipped 9 chars)"}]}, spend_log.SHORTENED_TEXTS),
])  # fmt: skip
def test_requests_whose_texts_are_not_stored_are_left_out_with_the_setting_that_keeps_them(tmp_path, capsys, body, reason):
    path = written(tmp_path / "log.jsonl", [spend_row(body)])
    assert replayed(capsys, path, status=1)["left_out"] == {reason: 1}
    assert main(["replay", path]) == 1
    assert reason.split("`")[1] in capsys.readouterr().out


def test_rows_of_other_calls_caches_and_failures_are_left_out_and_an_overflow_is_not():
    body = {"messages": [{"role": "user", "content": "Hi"}]}
    failed = {"status": "failure", "prompt_tokens": 0}
    error = {"error_class": "RateLimitError", "error_message": "slow down"}
    overflow = {"error_class": "BadRequestError", "error_message": "prompt is too long: 210000 tokens > 200000 maximum"}
    found = recorded(
        spend_log,
        spend_row(body, call_type="aembedding"),
        spend_row(body, cache_hit="True"),
        spend_row(body, **failed, metadata={"error_information": error}),
        spend_row(body, **failed, metadata={"error_information": overflow}),
        spend_row({}, proxy_server_request="", prompt_tokens=0, metadata="{}"),
    )
    assert [f.reason for f in found if isinstance(f, LeftOut)] == [
        spend_log.NO_CONVERSATION,
        spend_log.FROM_CACHE,
        spend_log.FAILED,
        spend_log.NO_TEXTS,
    ]
    assert [f.was_refused for f in found if isinstance(f, Recorded)] == [True]


# logs of requests


@pytest.mark.parametrize("envelope", [None, "request", "body", "payload"])
@pytest.mark.parametrize(
    ("body", "fmt"),
    [
        ({"messages": [{"role": "user", "content": "Hi"}]}, "openai-chat"),
        ({"system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}]}, "anthropic"),
        ({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]}]}, "anthropic"),
        ({"input": [{"role": "user", "content": "Hi"}]}, "openai-responses"),
        ({"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}, "gemini"),
    ],
)
def test_a_body_is_found_in_its_envelope_and_its_format_by_its_shape(body, fmt, envelope):
    body = {"model": "gpt-4o", **body}
    row = {"id": 1, envelope: body, "response": {"usage": {"prompt_tokens": 7}}} if envelope else body
    assert reading.reader_of(row) is request_log
    (found,) = recorded(request_log, row)
    assert (found.request.format, found.model) == (fmt, "gpt-4o")
    assert found.billed is None or found.billed.input_tokens == 7


def test_a_refused_request_is_an_overflow_and_a_failed_one_is_left_out():
    body = {"model": "gpt-4o", "messages": [{"role": "user", "content": "Hi"}]}
    errors = ["This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.", "busy"]
    overflow, busy = recorded(
        request_log, *({"request": body, "status": 400, "response": {"error": {"message": e}}} for e in errors)
    )
    assert overflow.was_refused
    assert busy == LeftOut(request_log.FAILED)


def test_the_input_of_embeddings_is_no_conversation():
    assert reading.reader_of({"model": "text-embedding-3-small", "input": ["one", "two"]}) is None


# whole sessions


def test_a_whole_session_is_a_request_before_each_answer():
    messages = [{"role": role, "content": role} for role in ("user", "assistant", "user", "assistant", "assistant", "user")]
    found = recorded(sessions, {"format": "openai-chat", "system": "S", "messages": messages})
    assert [len(f.request.fields["messages"]) - 1 for f in found] == [1, 3, 6]
    assert found[0].request.fields["messages"][0] == {"role": "system", "content": "S"}


# wrong input


ROW = {"request_id": 1, "call_type": "acompletion", "prompt_tokens": 1}
NESTED = b'[{"role": "user", "content": ' * 400 + b'"x"' + b"}]" * 400 + b"}\n"
HOSTILE = {
    "an empty file": b"",
    "binary": bytes(range(256)) * 40,
    "another kind": b'{"name": "package", "version": 1}\n',
    "a scalar": b"42\n",
    "an open array": b'[{"request_id": 1, ',
    "nested deeply": b'{"messages": ' + b"[" * 100_000 + b"\n",
    "an array of arrays": b"[[[[1]]]]",
    "a CSV of something else": b"name,size\na,1\n",
    "messages that are none": b'{"messages": [1, null, "x"], "model": 3}\n',
    "a session that is none": b'{"format": "openai-chat", "messages": [7]}\n',
    "lone surrogates": json.dumps({**ROW, "messages": [{"role": "user", "content": "\ud800"}]}).encode(),
    "a row that is nested deeply": json.dumps(ROW).encode()[:-1] + b', "messages": ' + NESTED,
    "a body that is nested deeply": b'{"messages": ' + NESTED,
    "a row without sense": b'{"request_id": 1, "call_type": [], "prompt_tokens": {}, "metadata": 3}\n',
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
@pytest.mark.parametrize("options", [(), ("--json",)], ids=["table", "json"])
def test_no_file_ends_in_a_traceback(content, options, tmp_path, capsys):
    (tmp_path / "file.jsonl").write_bytes(content)
    assert main(["replay", str(tmp_path), *options]) in (0, 1)
    printed = capsys.readouterr().out
    assert printed


def test_broken_lines_are_counted_and_named_and_the_others_are_replayed(tmp_path, capsys):
    good = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "x" * 1_000_000}]}).encode()
    path = tmp_path / "log.jsonl"
    path.write_bytes(b"\n".join([good, b'{"messages": [', b"\xff\xfe\x00", b"[1]", good, good[:-5]]))
    found = replayed(capsys, path)
    assert found["total"]["without"]["requests"] == 2
    assert found["broken"] == 4
    assert found["broken_places"] == [
        f"{path}:{n}: {why}" for n, why in ((2, "no JSON"), (3, "no JSON"), (4, "no JSON object"), (6, "no JSON"))
    ]


def test_an_array_that_is_broken_is_named(tmp_path):
    path = tmp_path / "log"
    path.write_text('[\n{"a": 1},\n{"a": oops}]')
    with path.open("rb") as file:
        assert list(rows_of(file)) == [Broken(1, "no JSON")]


WRONG = ([], {}, None, True, -5, 10**400, float("inf"), "[", [[]])
"""What a value of a file may be instead."""


def _with_one_wrong(value):
    """Yield copies of a JSON value, in each another place of which is wrong or missing."""
    places = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for place in places:
        for other in (*WRONG, *_with_one_wrong(value[place])):
            yield {**value, place: other} if isinstance(value, dict) else [*value[:place], other, *value[place + 1 :]]
        if isinstance(value, dict):
            yield {name: held for name, held in value.items() if name != place}


@pytest.mark.parametrize("reader", [spend_log, sessions, request_log], ids=lambda reader: reader.NAME)
def test_whatever_a_row_holds_in_a_place_it_is_read_or_left_out(reader):
    usage = {"prompt_tokens": 9, "completion_tokens": 4}
    body = bodies(turns=2)[0]
    rows = {
        spend_log: spend_row(body) | {"metadata": {"usage_object": usage}, "proxy_server_request": body},
        sessions: whole_session(turns=2),
        request_log: {"request": body, "response": {"usage": usage}, "status": 200},
    }
    for wrong in _with_one_wrong(rows[reader]):
        reader.recognises(wrong)
        assert list(reader.requests([Row(1, wrong)])) is not None


def test_figures_that_cannot_be_are_no_part_of_a_sum(tmp_path, capsys):
    body = bodies(turns=2)[0]
    usages = [{"prompt_tokens": tokens, "completion_tokens": 1} for tokens in (10**400, 10**15, -5)]
    rows = [spend_row(body, metadata={"usage_object": usage}) for usage in usages]
    rows += [spend_row(body, spend=spend) for spend in (10**400, float("inf"), "nan")]
    rows += [spend_row(body, prompt_tokens="nan", metadata={"model_map_information": {"model_map_value": PRICE}})]
    rows += [spend_row({**body, "max_tokens": 10**400})]
    found = replayed(capsys, written(tmp_path / "log", rows), "--model", MODEL)
    assert found["left_out"] == {"requests whose usage is no possible figure": 2}
    assert found["total"]["without"]["requests"] + found["total"]["without"]["refused"] == len(rows) - 2
    assert 0 < found["total"]["recorded"]["dollars"] < 1


def test_a_model_that_litellm_does_not_know_has_the_prices_of_its_row_and_no_warning_of_litellms(tmp_path):
    known = {"model_map_information": {"model_map_value": {"input_cost_per_token": 1e-6, "max_input_tokens": 8_000}}}
    row = spend_row(bodies(turns=2)[0], model="openai/own", metadata={**known, "usage_object": {"prompt_tokens": 1_000}})
    arguments = ["replay", written(tmp_path / "log", [row]), "--json"]
    printed = printed_by(f"from ctx_hooks.cli import main\nmain({arguments!r})")
    assert json.loads(printed)["total"]["without"]["dollars"] == pytest.approx(0.001)


@pytest.mark.parametrize(("group", "alias"), [("own/*", ""), ("gpt", "model_group_alias: {own/small: gpt}")])
def test_a_wildcard_or_an_alias_of_the_configuration_is_a_model_group(tmp_path, capsys, group, alias):
    model = "openai/*" if "*" in group else "openai/small"
    params = f"{{model: '{model}', input_cost_per_token: 0.001}}"
    listed = f"{{model_name: '{group}', litellm_params: {params}, model_info: {{max_input_tokens: 12000}}}}"
    config = f"model_list: [{listed}]\nrouter_settings: {{{alias}}}"
    (tmp_path / "config.yaml").write_text(config)
    path = written(tmp_path / "log", bodies(turns=40, model="own/small"))
    bill = replayed(capsys, path, "--config", tmp_path / "config.yaml")["total"]["without"]
    assert bill["refused"] > 0
    assert bill["dollars"] == pytest.approx(0.001 * bill["input_tokens"])


def test_a_price_of_0_that_a_configuration_states_is_a_price(tmp_path, capsys):
    config = tmp_path / "config.yaml"
    config.write_text("model_list: [{model_name: own, litellm_params: {model: openai/free, input_cost_per_token: 0}}]")
    found = replayed(capsys, written(tmp_path / "log", bodies(turns=2, model="own")), "--config", config)["total"]["without"]
    assert (found["dollars"], found["unpriced"]) == (0, 0)
    assert found["requests"] > 0


PRICE = {"input_cost_per_token": float("inf"), "max_input_tokens": 10**400}


def test_a_folder_is_read_with_those_below_it_and_what_is_no_history_is_named(tmp_path, capsys):
    folder = tmp_path / "projects" / "one"
    folder.mkdir(parents=True)
    written(folder / "a.jsonl", bodies(turns=2))
    (folder / "package.json").write_text("{}")
    found = replayed(capsys, tmp_path)
    assert found["kinds"] == {"request log": 1}
    assert found["not_read"] == [f"{folder / 'package.json'}: no history of a known kind"]
