"""Tests runs and sweeps: results, errors, interrupts, progress."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time

import pytest

import fulgurite

SMALL = {"workload": "mixed-skewed", "device": "none", "ops": 3000}


def test_a_result_is_a_table():
    result = fulgurite.sweep("pool", **SMALL, replacement=["lru", "clock"])
    assert len(result) == 2 and result["replacement"] == ["lru", "clock"]
    assert result[0]["hits"] + result[0]["misses"] == 3000
    assert result[-1] == result[1] == list(result)[1] == result.rows[1]
    assert result.columns[0] == "run_id" and set(result.columns) <= {column.name for column in fulgurite.columns()}
    assert result.run_of(1).settings()["replacement"] == "clock"
    with pytest.raises(IndexError):
        result[2]
    with pytest.raises(IndexError):
        result[-3]
    with pytest.raises(fulgurite.RequestError, match="width=0 is too narrow"):
        result.to_text(0)
    with pytest.raises(fulgurite.RequestError, match="did you mean `misses`"):
        result["mises"]
    with pytest.raises(fulgurite.RequestError, match="no row has a value in the column waf"):
        result["waf"]


def test_rows_equal_those_of_the_command_for_any_number_of_threads():
    runs = fulgurite.grid("pool", **SMALL, replacement="fifo,lru,2q,arc", seed=range(3))
    one, four = (fulgurite.sweep(runs, threads=threads).without_cost() for threads in (1, 4))
    assert one.to_csv() == four.to_csv() and len(one) == 12
    assert one["seed"] == [0, 1, 2] * 4


def test_the_text_has_the_default_columns():
    result = fulgurite.sweep("pool", **SMALL, replacement=["lru", "clock"])
    text = result.to_text(100)
    assert "replacement" in text and "--" not in text and max(map(len, text.splitlines())) <= 100
    assert str(result).startswith(result.finding[:20])
    html = fulgurite.run("pool", **{**SMALL, "workload": "zipf:theta=0.5"})._repr_html_()
    assert "<table>" in html and "zipf:theta=0.5" in html
    assert "2 rows" in repr(result)


def test_names_are_escaped_in_html(tmp_path):
    trace = tmp_path / "<script>alert(1)<"
    trace.write_text("R 1\nW 2\n")
    html = fulgurite.run("pool", workload=trace, format="page-ops", device="none", frames=1)._repr_html_()
    assert "<script" not in html and "&lt;script&gt;" in html


def test_errors_have_classes_and_the_messages_of_the_command():
    with pytest.raises(fulgurite.RequestError) as refused:
        fulgurite.run("pool", workload="zipff", device="none")
    assert str(refused.value).startswith("unknown workload `zipff`; did you mean `zipf`?")
    assert isinstance(refused.value, (fulgurite.FulguriteError, ValueError))
    for settings, sentence in [
        ({"frames": 0}, "--frames 0 for "),
        ({"write_back": "acee"}, "--write-back: unknown write-back `acee`"),
        ({"frames": float("nan")}, "--frames: nan is not a finite number"),
        ({"frames": object()}, "--frames: <object"),
        ({"write_back": b"ace"}, "--write-back: b'ace' is not a value"),
        ({"seed": -1}, "--seed"),
        ({"seed": 2**64}, "--seed"),
    ]:
        with pytest.raises(fulgurite.RequestError, match=sentence):
            fulgurite.run("pool", **{**SMALL, **settings})
    with pytest.raises(fulgurite.RequestError, match="the settings describe 2 runs"):
        fulgurite.run("pool", **SMALL, seed=[1, 2])
    with pytest.raises(fulgurite.RequestError, match="threads=0"):
        fulgurite.sweep("pool", **SMALL, threads=0)
    with pytest.raises(fulgurite.RequestError, match="on_error='ignore' is unknown"):
        fulgurite.sweep("pool", **SMALL, on_error="ignore")


def test_all_runs_are_checked_before_the_first():
    runs = fulgurite.grid("pool", **SMALL, seed=range(50)) + fulgurite.grid("pool", **{**SMALL, "frames": 0})
    with pytest.raises(fulgurite.RequestError, match="^run 51 of 51: --frames 0"):
        fulgurite.sweep(runs)


def test_a_failed_run_can_be_kept():
    runs = fulgurite.grid("pool", **SMALL, frames=[10, 0, 20])
    result = fulgurite.sweep(runs, on_error="keep")
    assert result["frames"] == [10, 20] and [result.run_of(row) for row in (0, 1)] == [runs[0], runs[2]]
    (failure,) = result.failures
    assert failure.run == runs[1] and isinstance(failure.error, fulgurite.RequestError)
    assert "1 failed" in repr(result)


def test_ctrl_c_ends_a_run_at_once():
    for command, settings in [
        ("pool", {"workload": "zipf", "ops": "10G"}),
        ("gc", {"workload": "zipf"}),
        ("bench", {"benchmark": "tpcc", "ops": "10M"}),
    ]:
        timer = threading.Timer(0.15, os.kill, (os.getpid(), signal.SIGINT))
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            fulgurite.run(command, **settings)
        assert time.monotonic() - began < 1.0, command
        # Nothing continues in the background.
        until = time.monotonic() + 2
        while "fulgurite" in threads() and time.monotonic() < until:
            time.sleep(0.01)
        assert "fulgurite" not in threads(), command


@pytest.mark.parametrize("format", ["msr", "oracle-general"])
def test_ctrl_c_ends_the_writing_of_a_trace(tmp_path, format):
    numpy = pytest.importorskip("numpy")
    trace = fulgurite.Trace.from_numpy(start=4096 * numpy.arange(5_000_000) % 2**40, op=0, length=4096)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        # The interrupt arrives during the compression, which takes seconds.
        trace.save(tmp_path / "long.gz", format)
    until = time.monotonic() + 2
    while "fulgurite" in threads() and time.monotonic() < until:
        time.sleep(0.01)
    assert "fulgurite" not in threads() and not list(tmp_path.iterdir())


def threads():
    """Returns the names of this process's threads."""
    names = []
    for task in pathlib.Path("/proc/self/task").iterdir():
        # A thread may end between the listing and the reading of its name.
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            names.append((task / "comm").read_text().strip())
    return names


def test_other_python_threads_continue_during_a_run():
    counted, stop = [0], threading.Event()

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    counting = threading.Thread(target=count)
    counting.start()
    began = time.monotonic()
    fulgurite.run("pool", workload="zipf", device="none", ops="3M")
    seconds, stopped = time.monotonic() - began, stop.set()
    counting.join()
    assert stopped is None and counted[0] > 100 * seconds


def test_progress_is_reported_and_may_end_a_run():
    told = []
    fulgurite.run("pool", workload="zipf", device="none", ops="2M", progress=told.append)
    assert told[-1].done > 1_900_000 and told[-1].total == 2_000_000 and told[-1].runs == told[-1].runs_done == 1

    def stop(now):
        if now.done > 0:
            raise StopIteration(now.done)

    began = time.monotonic()
    with pytest.raises(StopIteration):
        fulgurite.run("pool", workload="zipf", device="none", ops="10G", progress=stop)
    assert time.monotonic() - began < 2


def test_a_terminal_sees_a_line_and_a_pipe_nothing():
    # A short run would end before the line is drawn.
    code = "import fulgurite.progress as p; p.Watching.AFTER_S = 0; fulgurite = p.sys.modules['fulgurite']\n"
    code += "fulgurite.run('pool', workload='zipf', device='none', ops='9M')"
    piped = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert (piped.stdout, piped.stderr) == (b"", b"")
    import pty

    leader, follower = pty.openpty()
    with subprocess.Popen([sys.executable, "-c", code], stderr=follower, stdout=subprocess.DEVNULL) as process:
        os.close(follower)
        seen = b""
        while True:
            try:
                seen += os.read(leader, 4096)
            except OSError:
                break
    os.close(leader)
    assert process.returncode == 0
    assert b"[===" in seen and b" %" in seen and seen.endswith(b"\r") and b"Traceback" not in seen


def test_an_outlook_executes_nothing():
    runs = fulgurite.grid("pool", workload="zipf", ops="100G", seed=range(4))
    began = time.monotonic()
    outlook = fulgurite.outlook(runs, threads=2)
    assert outlook.runs == 4 and outlook.least_s < outlook.most_s and outlook.needed_bytes > 1 << 20
    assert "4 runs" in outlook.sentence and time.monotonic() - began < 5


def test_a_study_writes_its_folder(tmp_path):
    study = fulgurite.Study("waf-closed-form")
    found = study.run(tmp_path / "out", quick=True)
    assert found.finding and found.verdicts is not None and len(found) > 3
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "report.html",
        "study.toml",
        "table.csv",
        "table.jsonl",
        "table.parquet",
    ]
    assert found.report_path == str(tmp_path / "out" / "report.html")
    with pytest.raises(fulgurite.RequestError, match="unknown study `quickstat`; did you mean `quickstart`"):
        fulgurite.Study("quickstat")


def test_a_profile_is_a_value():
    profile = fulgurite.profile("optane")
    assert profile.device == "optane" and profile.page_bytes == 4096 and 0.9 < profile.alpha < 1.5
    assert profile.k_r >= 1 and profile.read_iops_max > profile.k_r


def test_names_are_those_of_the_command():
    result = fulgurite.names("replacement")
    assert "lru" in result["name"] and len(result) == 18
    with pytest.raises(fulgurite.RequestError, match="unknown list"):
        fulgurite.names("replacements")
