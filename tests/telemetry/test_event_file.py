"""Each event is a line of JSON in a file of this process alone; what cannot be written costs no request."""

import json
import os
import subprocess
import sys
import time
from dataclasses import replace

import pytest
from told_events import ANSWER, DECISION, EVENTS, OVERFLOW, events_of

from ctx_hooks.flow.startup import attach_sinks, detach_sinks
from ctx_hooks.policy.settings import Settings
from ctx_hooks.telemetry.event_file import EventFile, from_json, to_json
from ctx_hooks.telemetry.listeners import emit


@pytest.fixture(autouse=True)
def _no_sinks():
    yield
    detach_sinks()


class TestAnEventAsJson:
    @pytest.mark.parametrize("event", EVENTS, ids=lambda e: e.name)
    def test_its_line_gives_the_same_event_back(self, event):
        line = to_json(event)
        assert from_json(line) == event
        assert "\n" not in line
        assert json.loads(line)["name"] == event.name

    def test_a_field_that_another_version_has_is_left_out(self):
        assert from_json(json.dumps({**json.loads(to_json(OVERFLOW)), "colour": "red"})) == OVERFLOW

    @pytest.mark.parametrize(
        "line", ["", "{}", "[]", '{"name":"decision"}', to_json(ANSWER)[:-20], '{"name":"other"}', "\x00"]
    )
    def test_a_line_that_is_no_event_is_refused(self, line):
        with pytest.raises(ValueError, match=r"."):
            from_json(line)


class TestTheFile:
    def test_it_has_every_event_in_order_and_only_its_owner_reads_it(self, tmp_path):
        attach_sinks(Settings(events={"path": str(tmp_path)}))
        for event in EVENTS:
            emit(event)
        detach_sinks()
        (path,) = tmp_path.glob("events.*.jsonl")
        assert events_of(path) == EVENTS
        assert path.stat().st_mode & 0o777 == 0o600

    def test_rotation_keeps_as_many_files_as_the_settings_say_and_the_newest_events(self, tmp_path):
        file = EventFile(tmp_path, max_bytes=10_000, keep=3)
        told = [replace(OVERFLOW, attempt=n) for n in range(300)]
        for event in told:
            file.hear(event)
        file.close()
        paths = sorted(tmp_path.glob("events.*"), reverse=True)
        assert [p.name for p in paths] == ["events.1.jsonl.2", "events.1.jsonl.1", "events.1.jsonl"]
        assert all(p.stat().st_size <= 10_000 and p.stat().st_mode & 0o777 == 0o600 for p in paths)
        kept = events_of(*paths)
        assert kept == told[-len(kept) :]
        assert len(kept) > 40

    def test_each_process_has_a_file_of_its_own_and_a_restart_goes_on_with_it(self, tmp_path):
        first, second = EventFile(tmp_path, 10_000, 2), EventFile(tmp_path, 10_000, 2)
        first.hear(DECISION)
        second.hear(ANSWER)
        first.close()
        again = EventFile(tmp_path, 10_000, 2)
        again.hear(OVERFLOW)
        again.close()
        second.close()
        assert events_of(tmp_path / "events.1.jsonl") == [DECISION, OVERFLOW]
        assert events_of(tmp_path / "events.2.jsonl") == [ANSWER]


class TestWhatCannotBeWritten:
    @pytest.mark.parametrize("kind", ["missing", "a file"])
    def test_a_folder_that_is_none_switches_the_sink_off_with_one_warning(self, tmp_path, caplog, kind):
        folder = tmp_path / "none"
        if kind == "a file":
            folder.touch()
        attach_sinks(Settings(events={"path": str(folder)}))
        emit(DECISION)
        emit(ANSWER)
        (record,) = caplog.records
        reason = "Not a directory" if kind == "a file" else "No such file or directory"
        assert record.getMessage() == f"events are not written to {folder}: {reason}"
        assert record.exc_info is None
        assert not folder.is_dir()

    @pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")  # noqa: PTH110
    def test_a_full_disk_switches_the_sink_off_with_one_warning(self, tmp_path, caplog):
        (tmp_path / "events.1.jsonl").symlink_to("/dev/full")
        attach_sinks(Settings(events={"path": str(tmp_path)}))
        for _ in range(100_000):  # the thread that writes fails some events after the one that it fails with was emitted
            emit(OVERFLOW)
            if caplog.records:
                break
            time.sleep(0.001)  # else the queue may be full before that thread has a turn
        emit(OVERFLOW)
        assert [r.getMessage() for r in caplog.records] == ["the event file sink failed and is switched off"]

    @pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes with names")
    def test_a_disk_that_hangs_does_not_hang_the_end_of_the_process(self, tmp_path):
        os.mkfifo(tmp_path / "events.1.jsonl")
        reader = os.open(tmp_path / "events.1.jsonl", os.O_RDONLY | os.O_NONBLOCK)  # it never reads
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        command = [sys.executable, "-c", HANGING, str(tmp_path)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
        os.close(reader)
        assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr
        assert done.stderr.count("events come faster") == done.stderr.count("the last events are lost") == 1


HANGING = """
import sys
from told_events import OVERFLOW
from ctx_hooks.policy.settings import Settings
from ctx_hooks.flow.startup import attach_sinks
from ctx_hooks.telemetry import event_file
from ctx_hooks.telemetry.listeners import emit

event_file.CLOSE_SECONDS = 0.5
attach_sinks(Settings(events={"path": sys.argv[1]}))
for _ in range(6_000):  # more than a pipe and the queue hold
    emit(OVERFLOW)
print("ended")
"""
