"""Words are compared by their stems."""

from __future__ import annotations

from ctx_hooks.compaction.selection.bm25 import stems


def test_a_word_has_the_same_stem_beside_any_script():
    """Words are read by a faster pattern where nothing is written without spaces."""
    for text in ("Tuned the piano_2 in Grüße-Straße 12", "…→ x", "ÉCOLE İstanbul"):
        beside = [stem for stem in stems(f"{text} 钢琴") if stem != "钢琴"]
        assert stems(text) == beside
