"""A sink that fails is switched off with one warning, and harms neither requests nor other sinks."""

from ctx_hooks.telemetry.events import OverflowEvent
from ctx_hooks.telemetry.figures import CallNames
from ctx_hooks.telemetry.listeners import attach, emit, on

EVENT = OverflowEvent("overflow", 0.0, CallNames(), "enforce", 0, "input", 8_000, 9_000)


def test_a_failing_sink_hears_nothing_more_and_others_go_on(caplog):
    heard, tried, faults = [], [], []
    end_faults = on("fault", faults.append)

    def fail(event):
        tried.append(event)
        raise OSError("the disk is full")

    end_failing = attach("broken", {"overflow": fail, "answer": fail})
    end = attach("working", {"overflow": heard.append})
    emit(EVENT)
    emit(EVENT)
    end()
    end_failing()
    end_faults()
    emit(EVENT)
    assert (len(tried), len(heard)) == (1, 2)
    assert [r.getMessage() for r in caplog.records] == ["the broken sink failed and is switched off"]
    assert [event.sink for event in faults] == ["broken"]
