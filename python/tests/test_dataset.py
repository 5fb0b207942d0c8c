"""Tests sweeps into a Parquet data set on this machine: the table, resuming, and kept failures."""

import os
import pickle
import shutil
import signal
import subprocess
import sys
import time

import pytest

import fulgurite
from fulgurite.dataset import DataSet, batches, task_of

parquet = pytest.importorskip("pyarrow.parquet")

AXES = {"workload": ["zipf", "mixed-skewed"], "device": "none", "frames": [10, 20, 40], "ops": 2000, "seed": [1, 2]}


def runs():
    return fulgurite.grid("pool", **AXES)


def test_the_table_equals_that_of_a_plain_sweep(tmp_path):
    plain = fulgurite.sweep(runs()).without_cost().to_csv()
    for batch in (1, 5, 100):
        out = tmp_path / str(batch)
        result = fulgurite.sweep("pool", **AXES, out=out, batch=batch)
        assert result.to_csv() == plain and result.run_of(3) == runs()[3] and not result.failures
        files = sorted(out.iterdir())
        # All runs of a batch have the same workload.
        assert len(files) == {1: 12, 5: 4, 100: 2}[batch]
        keys = [key for file in files for key in parquet.read_table(file).column("key").to_pylist()]
        assert len(set(keys)) == len(keys) == 12
    table = parquet.read_table(tmp_path / "5")
    assert table.num_rows == 12 and table.column_names[:5] == ["key", "version", "input_hash", "error_class", "error"]
    assert set(table.column("run_id").to_pylist()) == set(result["run_id"])


def test_readers_of_the_folder_find_every_column(tmp_path):
    dataset = pytest.importorskip("pyarrow.dataset")
    polars = pytest.importorskip("polars")
    out = tmp_path / "out"
    settings = {"ops": 1000, "frames": 20, "seed": 2**64 - 1}
    mixed = [
        # The first run has no figures, and a run without a drive precedes one with a drive.
        *fulgurite.grid("pool", workload="zipf", device="none", **{**settings, "frames": 0}),
        *fulgurite.grid("pool", workload="zipf", device=["none", "p4510"], **settings),
        *fulgurite.grid(
            "gc",
            workload="zipf",
            logical="1792KiB",
            physical="2MiB",
            segment="64KiB",
            ops=3000,
            placement=["none", "sep-gc"],
        ),
    ]
    result = fulgurite.sweep(mixed, out=out, batch=1, on_error="keep")
    assert len(list(out.iterdir())) == len(mixed) == 5 and len(result.failures) == 1
    for frame in (dataset.dataset(out).to_table(), polars.scan_parquet(out / "*.parquet").collect().to_arrow()):
        assert frame.num_rows >= len(mixed) and set(result.columns) <= set(frame.column_names)
        assert 2**64 - 1 in frame.column("seed").to_pylist()
        for name in ("misses", "latency_p99_ns", "waf", "placement"):
            found = [cell for cell in frame.column(name).to_pylist() if cell is not None]
            assert sorted(found) == sorted(cell for cell in result[name] if cell is not None), name
        assert not {"cpu_ns_per_op", "peak_rss_bytes"} & set(frame.column_names)
    # The table of the sweep has the same types as without the folder.
    plain = fulgurite.sweep(mixed, on_error="keep").without_cost()
    assert result.to_csv() == plain.to_csv() and [list(map(repr, row.values())) for row in result] == [
        list(map(repr, row.values())) for row in plain
    ]


def test_unreadable_files_are_named(tmp_path):
    import pyarrow

    out = tmp_path / "out"
    fulgurite.sweep(runs(), out=out)
    part, other = sorted(out.iterdir())
    whole = part.read_bytes()
    for content in (whole[:100], b"", whole[:-50]):
        part.write_bytes(content)
        with pytest.raises(
            fulgurite.RequestError, match=rf"^out=.*: {part.name} cannot be read: .*; accepted: delete the file"
        ) as refused:
            fulgurite.sweep(runs(), out=out)
        assert len(str(refused.value).splitlines()) == 1
    parquet.write_table(pyarrow.table({"a": [1]}), part)
    with pytest.raises(fulgurite.RequestError, match=rf"{part.name} has no column key, so it is not from a sweep"):
        fulgurite.sweep(runs(), out=out)
    part.unlink()
    assert len(fulgurite.sweep(runs(), out=out)) == 12 and other.exists()


def test_finished_runs_are_not_executed_again(tmp_path):
    out = tmp_path / "out"
    first = fulgurite.sweep(runs()[:5], out=out)
    stamps = {file: file.stat().st_mtime_ns for file in out.iterdir()}
    told = []
    again = fulgurite.sweep(runs(), out=out, progress=told.append)
    assert {file: file.stat().st_mtime_ns for file in stamps} == stamps
    assert again.to_csv().startswith(first.to_csv().strip())
    # Seven runs are left, in batches with one workload each.
    assert told[-1].runs == 7 and told[-1].runs_done == 7
    count = len(list(out.iterdir()))
    assert fulgurite.sweep(runs(), out=out).to_csv() == again.to_csv() and len(list(out.iterdir())) == count


def test_a_failed_run_is_kept_and_repeated(tmp_path):
    class Moody(fulgurite.Replacement):
        def __init__(self, frames):
            self.held = {}

        def insert(self, frame, page, write):
            self.held[frame] = page

        def access(self, frame, write):
            if (tmp_path / "moody").exists():
                raise OSError("in no mood")

        def remove(self, frame):
            del self.held[frame]

        def order(self):
            return list(self.held)

    out = tmp_path / "out"
    some = fulgurite.grid(
        "pool", workload="zipf", device="none", frames=10, ops=500, replacement=["lru", Moody, "fifo"]
    )
    fulgurite.check_policy(Moody)
    (tmp_path / "moody").touch()
    failed = fulgurite.sweep(some, out=out, on_error="keep")
    assert failed["replacement"] == ["lru", "fifo"] and "in no mood" in str(failed.failures[0].error)
    rows = parquet.read_table(out).to_pylist()
    assert [row["error_class"] for row in rows] == [None, "RunError", None] and "in no mood" in rows[1]["error"]
    (tmp_path / "moody").unlink()
    healed = fulgurite.sweep(some, out=out, on_error="keep")
    assert healed["replacement"] == ["lru", "Moody", "fifo"] and not healed.failures
    assert healed["misses"][1] == healed["misses"][2]


def test_an_error_ends_the_sweep_on_request(tmp_path):
    out = tmp_path / "out"
    with pytest.raises(fulgurite.RequestError, match="run 2 of 2: --frames 0"):
        fulgurite.sweep("pool", workload="zipf", device="none", frames=[10, 0], ops=500, out=out)
    assert not out.exists(), "all runs are checked before the first"
    kept = fulgurite.sweep("pool", workload="zipf", device="none", frames=[10, 0], ops=500, out=out, on_error="keep")
    assert len(kept) == 1 and isinstance(kept.failures[0].error, fulgurite.RequestError)


def test_a_changed_trace_is_another_input(tmp_path):
    trace, out = tmp_path / "t.pages", tmp_path / "out"
    trace.write_text("R 1\nR 2\nR 1\n" * 50)
    settings = {"workload": trace, "format": "page-ops", "device": "none", "frames": 1}
    before = fulgurite.sweep("pool", **settings, out=out)
    # A trace with equal name and content in another folder is the same trace.
    (tmp_path / "elsewhere").mkdir()
    shutil.copy(trace, tmp_path / "elsewhere" / trace.name)
    moved = fulgurite.sweep("pool", **{**settings, "workload": tmp_path / "elsewhere" / trace.name}, out=out)
    assert moved.to_csv() == before.to_csv() and len(list(out.iterdir())) == 1
    trace.write_text("R 1\nR 1\n" * 50)
    after = fulgurite.sweep("pool", **settings, out=out)
    assert after["misses"] == [1] and before["misses"] == [101] and len(list(out.iterdir())) == 2


def test_an_interrupted_sweep_continues(tmp_path):
    out = tmp_path / "out"
    code = (
        "import fulgurite, sys\n"
        "fulgurite.sweep('pool', workload='zipf', device='none', ops='2M', seed=range(30), out=sys.argv[1], "
        "batch=1, threads=1)"
    )
    with subprocess.Popen([sys.executable, "-c", code, str(out)], stderr=subprocess.PIPE) as process:
        while len(list(out.glob("part-*"))) < 3:
            time.sleep(0.01)
            assert process.poll() is None
        os.kill(process.pid, signal.SIGINT)
        assert b"KeyboardInterrupt" in process.stderr.read()
    done = len(list(out.glob("part-*")))
    assert 3 <= done < 30
    (out / ".fulgurite-1.unfinished").write_text("what a kill may leave where files under way have names")
    result = fulgurite.sweep("pool", workload="zipf", device="none", ops="2M", seed=range(done + 1), out=out, batch=1)
    assert result["seed"] == list(range(done + 1)) and len(list(out.glob("part-*"))) == done + 1


def test_foreign_folders_are_refused(tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    for out, sentence in [
        (tmp_path, "contains mine.txt, which is not from a sweep"),
        (tmp_path / "mine.txt", "is not a folder"),
    ]:
        with pytest.raises(fulgurite.RequestError, match=sentence):
            fulgurite.sweep(runs(), out=out)
    for settings, sentence in [
        ({"batch": 5}, "batch is for sweeps into a data set"),
        ({"batch": 0, "out": tmp_path / "o"}, "batch=0 runs nothing"),
        ({"threads": 0, "out": tmp_path / "o"}, "threads=0 runs nothing"),
    ]:
        with pytest.raises(fulgurite.RequestError, match=sentence):
            fulgurite.sweep(runs(), **settings)


def test_keys_identify_runs_and_tables_can_be_pickled():
    tasks = [task_of(at, run) for at, run in enumerate(runs())]
    assert len({task.key for task in tasks}) == 12
    assert task_of(0, runs()[0]).key == tasks[0].key
    assert [len(batch) for batch in map(list, batches(iter(tasks), 4))] == [4, 4, 2, 2]
    result = fulgurite.sweep(runs()[:2])
    again = pickle.loads(pickle.dumps(result._table))
    assert again.csv() == result.to_csv() and [again.row(0), again.row(1)] == result.rows


def test_a_data_set_may_be_empty(tmp_path):
    assert len(fulgurite.sweep([], out=tmp_path / "out")) == 0 and DataSet(tmp_path / "out").known() == set()
