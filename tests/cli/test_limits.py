"""`ctx-hooks limits` prints what was learned of each deployment. tests/learning runs it on a real Redis."""

from ctx_hooks.cli.limits import tables_of
from ctx_hooks.cli.terminal import console
from ctx_hooks.learning.stats import ANYONE, DeploymentStats, Observation


def test_each_observation_is_a_row_with_its_tenant_by_name_and_its_age_the_newest_first(capsys):
    observed = {
        ("limit", "0a1b"): Observation((128_000.0,), 600.0),
        ("accepted_input", ANYONE): Observation((90_000.0,), 1_140.0),
    }
    deployment = "url:openai/a-model-with-a-long-name@http://a-host-with-a-long-name.example.com:8000/v1"[:80]
    console().print(tables_of({deployment: DeploymentStats(observed)}, {"0a1b": "team red"}, 1_200.0))
    title, heading, _, *rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert title == [deployment]
    assert heading == ["learned", "value", "tenant", "minutes", "ago"]
    assert rows == [["accepted_input", "90,000", "anyone", "1"], ["limit", "128,000", "team", "red", "10"]]
