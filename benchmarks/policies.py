"""The time of resolving a policy: for callers seen before, and for new ones.

uv run --group bench python benchmarks/policies.py
"""

from __future__ import annotations

import time

from ctx_hooks.policy.resolve import Caller, Policies, as_text
from ctx_hooks.policy.settings import Settings

CALLS = 5_000


def main() -> None:
    """Print microseconds a call."""
    teams = {f"team-{n}": {"policy": "balanced", "reserve": n} for n in range(200)}
    settings = {"defaults": {"language": "en"}, "models": {"openai/*": "gentle"}, "teams": teams}
    policies = Policies(Settings.model_validate(settings))
    for name, metadata in (
        ("seen before", lambda n: {"reserve": n % 50}),
        ("never seen", lambda n: {"reserve": n}),
    ):
        started = time.perf_counter()
        for n in range(CALLS):
            caller = Caller(group="openai/gpt-4o", team_names=(f"team-{n % 50}",), team=as_text(metadata(n)))
            policies.resolve(caller)
        print(f"{name:12}{(time.perf_counter() - started) / CALLS * 1e6:8.1f} microseconds")


if __name__ == "__main__":
    main()
