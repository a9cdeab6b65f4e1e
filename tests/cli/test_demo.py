"""`ctx-hooks demo` asks a real proxy over every route and prints a row for each."""

from __future__ import annotations

from ctx_hooks.cli import main
from ctx_hooks.cli.demo import ROUTES, WINDOW_TOKENS


def test_every_route_has_a_row_whole_and_streamed_and_is_answered_within_the_window(capsys):
    assert main(["demo"]) == 0
    _, header, *rows, verdict = capsys.readouterr().out.splitlines()
    assert header.split() == ["route", "deployment", "stream", "sent", "window", "attempts", "accepted", "answer"]
    assert verdict == "Every route was answered."
    asked = [(row.split()[0], row[49:57].strip()) for row in rows]
    assert asked == [(route.path, stream) for route in ROUTES for stream in ("no", "yes")]
    for row in rows:
        figures, answer = row[57:].split("  Answer to ")
        sent, window, attempts, accepted = (int(figure.replace(",", "")) for figure in figures.split())
        assert sent > window == WINDOW_TOKENS >= accepted > 0
        assert attempts >= 1
        assert answer.rstrip() == f"{accepted} tokens."
