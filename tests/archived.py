"""Texts by their handles, and when all of them are stored."""

import asyncio
import sqlite3
from collections import Counter
from contextlib import closing

from waits import until

from ctx_hooks.addons.retrieval.archive import disk
from ctx_hooks.conversation.handles import handle_of
from ctx_hooks.telemetry.listeners import on

TEXTS = ["1,204 lines of a log\n" * 50, "", "the 琴 is tuned", "half a character: \ud800", "\0" * 1_000]


def by_handle(tenant, texts=TEXTS):
    return {handle_of(tenant, text): text for text in texts}


def handles_in(folder):
    with closing(sqlite3.connect(folder / disk.FILE)) as file:
        return [handle for (handle,) in file.execute("SELECT handle FROM texts ORDER BY expires_at, handle")]


async def stored(archive, settings, tenant, texts):
    """Store texts and wait until nothing is left to be written; return the number of texts by outcome, as events have it."""
    found = Counter()
    end = on("archive", lambda event: found.update({event.outcome: event.texts}))
    archive.store(asyncio.get_running_loop(), settings, tenant, texts)
    await settled(archive)
    end()
    return found


async def settled(archive):
    """Wait until nothing is left to be written."""
    await asyncio.sleep(0)  # what another thread has queued begins
    await until(lambda: not archive.writing)


async def got(archive, settings, tenant, handles):
    """Return the texts of many handles, without those that are not available."""
    found = {handle: await archive.get(settings, tenant, handle) for handle in handles}
    return {handle: text for handle, text in found.items() if text is not None}
