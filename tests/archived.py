"""Texts by their handles, and when all of them are stored."""

import asyncio
import sqlite3
from contextlib import closing

from ctx_hooks.addons.retrieval.archive import disk
from ctx_hooks.conversation.cut_texts import Handles

TEXTS = ["1,204 lines of a log\n" * 50, "", "the 琴 is tuned", "half a character: \ud800", "\0" * 1_000]
LAST = "a" * 12


def by_handle(tenant, texts=TEXTS):
    return {Handles(tenant).of(text): text for text in texts}


def handles_in(folder):
    with closing(sqlite3.connect(folder / disk.FILE)) as file:
        return [handle for (handle,) in file.execute("SELECT handle FROM texts ORDER BY expires_at, handle")]


async def stored(archives, settings, tenant, texts):
    """Have texts written."""
    archives.put(settings, tenant, texts)
    assert await settled(archives, settings, tenant)


async def store_text(archives, settings, tenant, handle, text):
    """Have a text written; return whether it was."""
    batch = archives._at(settings).add(settings, tenant, {handle: text})  # noqa: SLF001 - what `put` does without waiting
    return batch is not None and await asyncio.wait_for(batch.written, 60)


async def settled(archives, settings, tenant):
    """Wait until all that was put is written or given up; return whether a text that is put now is written."""
    return await store_text(archives, settings, tenant, LAST, "the last one")
