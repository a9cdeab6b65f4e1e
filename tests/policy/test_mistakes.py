"""No mistake in the settings does more than was asked: it enforces for nobody else, and every lock stays shut."""

import copy

import litellm
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ctx_hooks.cli import main
from ctx_hooks.hook import CtxHooks
from ctx_hooks.litellm_compat.deployments import configuration
from ctx_hooks.policy.loading import located, settings_of
from ctx_hooks.policy.resolve import Caller, Policies, as_text, switched_off

WEAKEST_FIRST = ("off", "observe", "enforce")
OPERATORS_NAMES = ("models", "teams", "keys", "sessions")
"""Sections whose keys are names of the operator's own: nobody can say that one is misspelt."""
CALLERS = [
    Caller(group=group, team_names=team, key_names=key, session=session)
    for group in ("gpt", "claude")
    for team in ((), ("alpha",), ("beta",))
    for key, session in (((), ""), (("robot",), "group:1"))
]
OVERRIDES = ("deployment", "organization", "project", "team", "key")

fields = st.fixed_dictionaries(
    {},
    optional={
        "policy": st.sampled_from(["quiet", "careful", "observe", "mycodeagent"]),
        "reserve": st.sampled_from([4_000, 9_000]),
        "compaction": st.just("cost_aware"),
        "retrieval": st.booleans(),
        "locked": st.lists(st.sampled_from(["mode", "reserve", "retrieval"]), max_size=3),
    },
)
moded = st.one_of(
    fields,
    st.builds(lambda f, mode: {**f, "mode": mode}, fields, st.sampled_from([*WEAKEST_FIRST, False, True])),
    st.builds(lambda f, on: {**f, "enabled": on}, fields, st.sampled_from([False, True, "no", "yes"])),
)
scope = st.one_of(moded, st.sampled_from(["quiet", "careful", "mycodeagent", "off", "observe", False]))
policies = st.fixed_dictionaries(
    {"quiet": moded.map(lambda f: {k: v for k, v in f.items() if k != "policy"})},
    optional={"careful": moded.map(lambda f: {**f, "policy": "mycodeagent"})},
)
trees = st.fixed_dictionaries(
    {"policies": policies},
    optional={
        "defaults": scope,
        "models": st.fixed_dictionaries({}, optional={"gpt": scope, "*": scope}),
        "teams": st.fixed_dictionaries({}, optional={"alpha": scope, "be*": scope}),
        "keys": st.fixed_dictionaries({}, optional={"robot": scope}),
        "sessions": st.fixed_dictionaries({}, optional={"group:*": scope}),
        "metadata": st.fixed_dictionaries({}, optional=dict.fromkeys(OVERRIDES, scope)),
    },
)


def places(value, path=()):
    """Yield the path of each value in a tree."""
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, below in inner:
        yield from places(below, (*path, key))


@st.composite
def misspelt(draw, word):
    """Return a word with one slip of the hand."""
    at = draw(st.integers(0, len(word) - 1))
    letter = draw(st.sampled_from("aeinorstxz_"))
    slips = [word[:at] + word[at + 1 :], word[:at] + letter + word[at:], word[:at] + letter + word[at + 1 :], word.upper()]
    slips += [word[:at] + word[at + 1] + word[at] + word[at + 2 :]] if at + 1 < len(word) else []
    return draw(st.sampled_from([slip for slip in slips if slip != word]))


@st.composite
def mistaken(draw, tree):
    """Return a tree with one mistake in it, and whether there was a place for one of the kind that was drawn."""
    tree = copy.deepcopy(tree)
    path = draw(st.sampled_from([p for p in places(tree) if p and p != ("metadata",)]))
    *above, last = path
    parent = tree
    for key in above:
        parent = parent[key]
    value = parent[last]
    names_somebody = len(path) == 2 and path[0] in (*OPERATORS_NAMES, "metadata")
    has_no_effect = len(path) == 3 and path[0] == "metadata"  # an unknown field of metadata is anybody's
    kinds = ["wrong type"] if last != "retrieval" else []
    kinds += ["misspelt key"] if isinstance(parent, dict) and not (names_somebody or has_no_effect) else []
    kinds += ["misspelt value"] if isinstance(value, str) else []
    kinds += ["unknown field"] if isinstance(value, dict) and len(path) == (1 if path[0] == "defaults" else 2) else []
    kind = draw(st.sampled_from(kinds or ["none"]))
    if kind == "wrong type":
        wrong = [7, 1.5, [["mode"]], *([] if path[0] == "metadata" else [b"x"]), *([] if last == "locked" else [["x"]])]
        parent[last] = draw(st.sampled_from(wrong))  # the name of a field that nobody knows locks nothing: there is none
    elif kind == "misspelt key":
        parent[draw(misspelt(last))] = parent.pop(last)
    elif kind == "misspelt value":
        parent[last] = draw(misspelt(value))
    elif kind == "unknown field":
        value[draw(st.sampled_from(["reserve_token", "of_a_newer_version", "languag"]))] = draw(
            st.sampled_from(["enforce", 7, True, None, {"mode": "enforce"}])
        )
    return tree


def resolved(tree):
    """Return what holds for each caller."""
    metadata = {name: as_text(found) for name, found in tree.get("metadata", {}).items()}
    read, _ = settings_of({name: found for name, found in tree.items() if name != "metadata"})
    policies = Policies(read)
    plain = [policies.resolve(caller) for caller in CALLERS]
    return [*plain, policies.resolve(Caller(group="gpt", team_names=("alpha",), key_names=("robot",), **metadata))]


@settings(max_examples=60)
@given(data=st.data(), tree=trees)
def test_no_mistake_enforces_for_more_callers_or_opens_a_lock(data, tree):
    wrong = data.draw(mistaken(tree))
    for meant, found in zip(resolved(tree), resolved(wrong), strict=True):
        assert found.policy.mode != "enforce" or meant.policy.mode == "enforce"
        if tree.keys() != wrong.keys():
            assert found.policy.mode != "enforce"  # nothing is changed: the section with a misspelt name has lost its locks
            continue
        for line in meant.ignored:
            origin, _, rest = line.partition(": ")
            if " is locked by " in rest:
                assert found.origins.get(rest.split(" ")[0]) != origin


OFF = {"defaults": {"mode": "observe"}, "teams": {"alpha": "off"}}


@pytest.mark.parametrize("config", [
    {"callback_setting": {"ctx_hooks": OFF}}, {"callback_settings": {"ctx_hook": OFF}}, {"callback_settings": "observe"},
    {"callback_settings": {"ctx-hooks": OFF, "otel": {}}}, {"litellm_settings": {"ctx_hooks": OFF}},
    {"ctx_hooks": OFF, "callback_settings": None}, {"litellm_settings": {"callback_settings": {"ctx_hooks": OFF}}},
    {"callback_settings": {"ctx_hooks.proxy_handler_instance": OFF}}, {"litellm_settings": {"ctx_hooks_settings": OFF}},
    {"callback_settings": {"ctx_hooks": {"config": {"mode": "observe"}, "teams": {"alpha": {"settings": {"mode": False}}}}}},
    {"callback_settings": {"ctx_hooks": {"groups": {"gpt": "observe"}, "keys": {"robot": "enforce"}}}},
    {"callback_settings": {"ctx_hooks": {"mode": "observe", "teams": {"alpha": {"mode": "enforce"}}}}},
    {"callback_settings": {"ctx_hooks": {"defualts": {"mode": "observe"}, "teems": {"alpha": "off"}}}},
    {"callback_settings": {"ctx_hooks": {"defaults": {"mode": "obsreve"}, "teams": {"alpha": "of"}}}},
    {"callback_settings": {"ctx_hooks": {"defaults": {"policy": "obsrve"}, "teams": {"alpha": ["off"], "b": None}}}},
    {"callback_settings": {"ctx_hooks": {"defaults": {"reserve": 4_000}, "teams": ["alpha"]}}},
], ids=lambda config: str(config)[:90])  # fmt: skip
def test_mistake_enforces_for_nobody_and_check_fails(config, tmp_path, monkeypatch):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    assert main(["check", str(path)]) == 1
    monkeypatch.setattr(litellm, "callback_settings", config.get("callback_settings") or {})
    read, _ = located({**config, "callback_settings": configuration()["callback_settings"]})
    policies = Policies(settings_of(read)[0])
    for caller in (Caller(), Caller(team_names=("alpha",)), Caller(key_names=("robot",))):
        assert policies.resolve(caller).policy.mode in ("observe", "off")


@pytest.mark.parametrize("fields", [
    {"context_compression": False}, {"compaction": False}, {"compaction": {"enabled": False}}, {"compression": False},
    {"compaction": "off"}, {"compression": {"enabled": "no"}}, {"enabled": False}, {"mode": "none"},
    {"autoCompact": "false"}, {"contextPruning": {"mode": "off"}}, {"compaction_enabled": 0}, {"mode": {"enabled": False}},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("place", ["defaults", "models", "teams", "keys", "sessions", "policies", "top", *OVERRIDES])
def test_words_that_say_off_switch_off(fields, place):
    caller = Caller(group="gpt", team_names=("alpha",), key_names=("robot",), session="group:1")
    names = {"models": "gpt", "teams": "alpha", "keys": "robot", "sessions": "group:*"}
    if place in OVERRIDES:
        read, caller = settings_of({})[0], caller._replace(**{place: as_text(fields)})
    elif place == "policies":
        read = settings_of({"policies": {"mine": fields}, "defaults": "mine"})[0]
    else:
        scopes = (
            {"defaults": fields} if place == "defaults" else {place: {names[place]: fields}} if place in names else fields
        )
        read = settings_of(scopes)[0]
    assert Policies(read).resolve(caller).policy.mode == "off"


@pytest.mark.parametrize("fields", [
    {"mode": "enforce"}, {"compaction": "full"}, {"retrieval": False}, {"summary": False, "archive": False},
    {"keep_recent": 0}, {"compaction": "cost_aware", "locked": ["compaction"]}, {"block_below_tokens": 0},
    {"tool_results": {"max_lines": 9}}, {"compaction_api": False}, {"compaction_api": True},
], ids=str)  # fmt: skip
def test_other_words_leave_the_plugin_on(fields):
    read, wrong = settings_of({"defaults": fields})
    assert (Policies(read).resolve(Caller()).policy.mode, wrong) == ("enforce", [])


@pytest.mark.parametrize("beside", [
    {"office": "Berlin"}, {"enforcement_date": 2026}, {"notes": {"mode": "fast"}}, {"observer": "Ann"}, {"offset": 3},
    {"model": "off"}, {"tags": ["off", "observe"]}, {"policies": {"a": "off"}}, {"contact": {"policy": "off"}},
], ids=str)  # fmt: skip
@pytest.mark.parametrize("place", ["organization", "project", "team", "key"])
def test_metadata_beside_the_fields_has_no_effect(beside, place):
    found = Policies(settings_of({})[0]).resolve(Caller(**{place: as_text({**beside, "reserve": 9_000})}))
    assert (found.policy.mode, found.policy.reserve) == ("enforce", 9_000)
    assert f"{place}.{next(iter(beside))}: there is no such field" in found.ignored[0]


def test_nested_section_loses_its_wrong_part_only():
    wrong = {"backend": "disk", "path": "/texts", "compress": True, "retention_days": -1}
    read, lines = settings_of(
        {"defaults": {"archive": wrong}, "events": {"path": "/events", "size": 7}, "cache_bytes": 1_000}
    )
    found = Policies(read).resolve(Caller()).policy
    assert (found.mode, found.archive.backend, found.archive.path) == ("observe", "disk", "/texts")
    assert (read.events.path, read.cache_bytes) == ("/events", 1_000)  # neither says anything of the mode
    for name in ("defaults.archive.compress", "defaults.archive.retention_days", "events.size"):
        assert any(name in line for line in lines)


def test_proxy_observes_with_settings_in_a_misspelt_section(monkeypatch, caplog):
    proxy_server = pytest.importorskip("litellm.proxy.proxy_server")
    config = {"callback_setting": {"ctx_hooks": {"defaults": "observe"}}}
    monkeypatch.setattr(litellm, "callback_settings", {})
    monkeypatch.setattr(proxy_server.proxy_config, "config", config)
    assert CtxHooks().settings.at_most == "observe"
    assert "callback_setting.ctx_hooks: belongs under `callback_settings`" in caplog.text


@pytest.mark.parametrize("whole", ["observe", ["off"], 7, True, False, "off", "nonsense"], ids=str)
def test_settings_that_are_no_sections_never_enforce(whole):
    read, wrong = settings_of(whole)
    assert Policies(read).resolve(Caller()).policy.mode == ("off" if whole in (False, "off") else "observe")
    assert wrong


def test_the_rest_of_a_scope_with_a_mistake_stays_in_force():
    opted_out = {"compaction": "cost_aware", "retrieval": False, "archive": None, "reserve_token": 1}
    settings = {"defaults": {"retrieval": True, "archive": {}}, "teams": {"alpha": opted_out}}
    resolved_ = Policies(settings_of(settings)[0]).resolve(Caller(team_names=("alpha",)))
    found = resolved_.policy
    assert (found.compaction, found.retrieval, found.archive, found.mode) == ("cost_aware", False, None, "observe")
    assert resolved_.ignored[-1].endswith("; the mode here is 'observe' at most")


@pytest.mark.parametrize(("allowed", "mode"), [(["language"], "enforce"), (["language", "mode"], "observe")])
def test_requests_mistake_weakens_only_a_settable_mode(allowed, mode):
    read, _ = settings_of({"defaults": {"request_may_set": allowed}})
    found = Policies(read).resolve(Caller(request='{"language": "fr"}'))
    assert found.policy.mode == mode
    assert any("the mode here is" in line for line in found.ignored) == (mode == "observe")


@pytest.mark.parametrize("value", ["", "1", "true", "ON", "yes", "0", "false", "off", "no", "OFF", "fasle", "observe"])
def test_any_value_but_on_switches_off(monkeypatch, value):
    monkeypatch.setenv("CTX_HOOKS_ENABLED", value)
    assert switched_off() is (value not in ("", "1", "true", "ON", "yes"))


def test_team_named_by_number_has_its_policy():
    read, wrong = settings_of({"teams": {2024: "off"}})
    assert not wrong
    assert Policies(read).resolve(Caller(team_names=("2024",))).policy.mode == "off"


@pytest.mark.parametrize("name", ["reserve", "keep_recent"])
@pytest.mark.parametrize("value", [None, "dynamic", "16384", "100%", "-1%", -1, True, 1.5, [], {}])
def test_an_amount_that_is_none_is_one_mistake_in_plain_words(name, value):
    _, wrong = settings_of({"defaults": {name: value}})
    if (name, value) in [("reserve", "dynamic"), ("reserve", None)]:
        assert wrong == []
    else:
        (line,) = wrong
        assert line.endswith("; the mode here is 'observe' at most")
        assert f".defaults.{name}: tokens, or a share below 100 %, are expected" in line
