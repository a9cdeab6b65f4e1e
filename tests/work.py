"""Work counted instead of timed: the same figure on every machine, whatever its load."""

import sys

from ctx_hooks.runtime import content_cache

GROWTH = 8
MOST_RATIO = 2 * GROWTH
"""Linear work is 8 times as much, quadratic work 64 times."""


def lines_run(work):
    """Return how many lines of Python run in `work`, each round of a loop anew."""
    content_cache.clear_all()
    count = 0

    def trace(_frame, event, _argument):
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def assert_linear(made, work, size):
    """Assert that `work` grows no more than linearly with the size of what is made for it."""
    work(made(size))  # what is loaded at its first use is no growth
    small, large = made(size), made(GROWTH * size)
    few, many = lines_run(lambda: work(small)), lines_run(lambda: work(large))
    assert many <= MOST_RATIO * few, (few, many)
