"""`ctx-hooks limits` prints what was learned of each deployment. tests/learning runs it on a real Redis."""

import socket
from contextlib import closing

from ctx_hooks.cli import main
from ctx_hooks.cli.limits import lines
from ctx_hooks.learning.stats import ANYONE, DeploymentStats, Observation


def test_each_observation_is_a_line_with_its_values_its_tenant_and_its_age_the_newest_first():
    stats = DeploymentStats(
        {
            ("limit", "red"): Observation((128_000.0,), 600.0),
            ("accepted_input", ANYONE): Observation((90_000.0,), 1_140.0),
        }
    )
    printed = [line.split() for line in lines("id:model", stats, 1_200.0)]
    assert printed == [
        ["id:model"],
        ["accepted_input", "90,000", "anyone", "1", "min", "ago"],
        ["limit", "128,000", "red", "10", "min", "ago"],
    ]


def test_a_redis_that_cannot_be_reached_is_told(monkeypatch, capsys):
    with closing(socket.socket()) as unheard:
        unheard.bind(("127.0.0.1", 0))  # bound, so nobody else listens there
        monkeypatch.setenv("REDIS_HOST", "127.0.0.1")
        monkeypatch.setenv("REDIS_PORT", str(unheard.getsockname()[1]))
        assert main(["limits", "ls"]) == 1
    assert "Redis cannot be reached" in capsys.readouterr().err
