"""Tests sweeps on Dask: processes on this machine, workers that are killed, batch scripts. `scripts/python`
runs the tests."""

import contextlib
import math
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import threading
import time

import dask
import distributed
import pyarrow.parquet
import pytest

import fulgurite
from fulgurite import cluster

AXES = {"workload": ["zipf", "mixed-skewed"], "device": "none", "frames": [10, 20, 40], "ops": 2000, "seed": range(6)}


@pytest.fixture(scope="module")
def client():
    # A task whose worker dies is repeated twice.
    with dask.config.set({"distributed.scheduler.allowed-failures": 2}):
        with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
            yield client


def test_the_table_does_not_depend_on_the_workers(client, tmp_path):
    plain = fulgurite.sweep("pool", **AXES).without_cost().to_csv()
    told = []
    result = fulgurite.sweep("pool", **AXES, client=client, batch=4, out=tmp_path / "out", progress=told.append)
    assert result.to_csv() == plain and told[-1].runs_done == 36
    assert fulgurite.sweep("pool", **AXES, client=client, batch=7).to_csv() == plain
    assert pyarrow.parquet.read_table(tmp_path / "out").num_rows == 36


def test_a_killed_worker_costs_nothing_but_time(client, tmp_path):
    out = tmp_path / "out"
    axes = {"workload": "zipf", "device": "none", "ops": "3M", "seed": range(16)}
    pids = client.run(os.getpid)

    def kill():
        while not list(out.glob("part-*")):
            time.sleep(0.01)
        os.kill(next(iter(pids.values())), signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    result = fulgurite.sweep("pool", **axes, client=client, batch=1, out=out)
    killer.join()
    assert result["seed"] == list(range(16)) and not result.failures
    assert set(client.run(os.getpid).values()) != set(pids.values()), "the worker was not killed"
    assert result.to_csv() == fulgurite.sweep("pool", **axes).without_cost().to_csv()


class Deadly(fulgurite.Replacement):
    """Ends its process during a run, as if memory ran out, but not during the check before it."""

    def __init__(self, frames):
        self.held, self.is_run = {}, frames == 33

    def insert(self, frame, page, write):
        if self.is_run:
            # Wait until the other tasks are assigned to workers.
            time.sleep(0.2)
            os.kill(os.getpid(), signal.SIGKILL)
        self.held[frame] = page

    def access(self, frame, write):
        pass

    def remove(self, frame):
        del self.held[frame]

    def order(self):
        return list(self.held)


def test_a_poisoned_run_stops_no_other(client, tmp_path):
    runs = fulgurite.grid(
        "pool", workload="zipf", device="none", ops=2000, frames=33, replacement=["lru", Deadly, "fifo", "clock"]
    )
    result = fulgurite.sweep(runs, client=client, batch=4, out=tmp_path / "out", on_error="keep")
    assert result["replacement"] == ["lru", "fifo", "clock"]
    (failure,) = result.failures
    assert failure.run == runs[1] and "the run ended its worker: KilledWorker" in str(failure.error)


def test_a_poisoned_run_is_distinguished_from_its_neighbours():
    # All tasks are assigned to the only worker, and Dask blames all tasks of a lost worker.
    axes = {"workload": "zipf", "device": "none", "frames": 33}
    others = fulgurite.grid("pool", **axes, ops=2000, seed=range(12))
    runs = [*fulgurite.grid("pool", **axes, ops=2000, replacement=Deadly), *others]
    settings = {"distributed.scheduler.allowed-failures": 2, "distributed.scheduler.worker-saturation": math.inf}
    # With this setting the cluster would give a worker up before its replacement is ready.
    settings["distributed.deploy.lost-worker-timeout"] = "200ms"
    with dask.config.set(settings):
        with distributed.Client(n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0") as client:
            # Stop waiting after two minutes, because without a worker the sweep would wait for ever.
            waits = threading.Timer(120, client.close)
            waits.start()
            result = fulgurite.sweep(runs, client=client, on_error="keep")
            waits.cancel()
    assert result["seed"] == list(range(12))
    assert [failure.run for failure in result.failures] == [runs[0]]


class Here(fulgurite.Replacement):
    """A policy that a test copies without its source."""

    def __init__(self, frames):
        self.held = {}

    def insert(self, frame, page, write):
        self.held[frame] = page in {"a", "b", "c"}

    def access(self, frame, write):
        pass

    def remove(self, frame):
        del self.held[frame]

    def order(self):
        return list(self.held)


def test_run_ids_of_policies_do_not_depend_on_the_workers(client):
    text = pathlib.Path(__file__).read_text(encoding="utf-8")
    names = {"fulgurite": fulgurite, "__name__": "__main__"}
    exec(text[text.index("class Here(") : text.index("def test_run_ids_of")], names)
    for policy in (Here, names["Here"]):
        axes = {"workload": "zipf", "device": "none", "ops": 500, "frames": [10, 20], "replacement": policy}
        assert (
            fulgurite.sweep("pool", **axes, client=client, batch=1)["run_id"]
            == fulgurite.sweep("pool", **axes)["run_id"]
        )


def test_an_error_of_a_run_is_the_error_of_the_sweep(client):
    with pytest.raises(fulgurite.RequestError, match="--frames 0"):
        fulgurite.sweep("pool", **{**AXES, "frames": 0}, client=client)
    with pytest.raises(fulgurite.RequestError, match="threads and client"):
        fulgurite.sweep("pool", **AXES, client=client, threads=2)
    with pytest.raises(
        fulgurite.RequestError, match="client='127.0.0.1:8786' is a str; accepted: a distributed.Client"
    ):
        fulgurite.sweep("pool", **AXES, client="127.0.0.1:8786")


STUDY = """
title = "A study"
question = "Which is best?"
command = "pool"
[grid]
device = "none"
ops = 1000
frames = 50
[[parts]]
name = "first"
grid = { workload = "zipf", replacement = ["lru", "fifo"] }
[[parts]]
name = "second"
grid = { workload = "mixed-skewed", seed = [1, 2, 3] }
"""


def call(*typed, **more):
    return subprocess.run(
        [sys.executable, "-m", "fulgurite.cluster", *map(str, typed)], capture_output=True, text=True, **more
    )


def test_the_command_runs_a_study_and_resumes_it(tmp_path):
    (tmp_path / "s.toml").write_text(STUDY)
    typed = ["s.toml", "--cluster", "local", "--workers", "2", "--batch", "1"]
    said = call(*typed, cwd=tmp_path)
    assert said.returncode == 0, said.stderr
    assert said.stdout == "table:  results/s/table.csv, 5 rows\nreport: results/s/report.html\n"
    of_study = fulgurite.Study(tmp_path / "s.toml").run(tmp_path / "plain")
    out = tmp_path / "results" / "s"
    assert (out / "table.csv").read_text() == of_study.to_csv()
    assert "fulgurite-sweep s.toml" in (out / "report.html").read_text()
    files = sorted((out / "runs").iterdir())
    assert len(files) == 5
    files[2].unlink()
    again = call(*typed, cwd=tmp_path)
    assert again.returncode == 0 and "5 runs, 4 of which may be" in again.stderr
    assert (out / "table.csv").read_text() == of_study.to_csv() and len(list((out / "runs").iterdir())) == 5


def test_an_interrupt_prints_no_tracebacks_and_the_command_continues(tmp_path):
    """A terminal interrupts all processes of the command. Finished runs are kept and not executed again."""
    (tmp_path / "s.toml").write_text(
        STUDY.replace("ops = 1000", 'ops = "3M"').replace("[1, 2, 3]", str(list(range(30))))
    )
    typed = [sys.executable, "-m", "fulgurite.cluster", "s.toml", "--workers", "2", "--batch", "1"]
    runs = tmp_path / "results" / "s" / "runs"
    # Another program uses Dask's default port.
    with socket.socket() as other:
        with contextlib.suppress(OSError):
            other.bind(("", 8787))
            other.listen()
        command = subprocess.Popen(typed, cwd=tmp_path, stderr=subprocess.PIPE, text=True, start_new_session=True)
        while not list(runs.glob("part-*")):
            assert command.poll() is None, command.stderr.read()
            time.sleep(0.01)
        os.killpg(command.pid, signal.SIGINT)
        said = command.communicate(timeout=30)[1].splitlines()
    assert command.returncode == 130
    # Dask may print messages about lost tasks as well.
    assert said[-1] == "fulgurite-sweep: interrupted; finished runs are kept, and the same command continues from them"
    assert not [line for line in said if "KeyboardInterrupt" in line or "Port 8787" in line]
    kept = set(runs.iterdir())
    assert 0 < len(kept) < 32
    again = call(*typed[3:], cwd=tmp_path)
    assert again.returncode == 0 and f"32 runs, {len(kept)} of which may be" in again.stderr
    assert kept < set(runs.iterdir()) and len(list(runs.iterdir())) == 32


def test_the_command_finds_a_scheduler_by_its_address(client, tmp_path):
    (tmp_path / "s.toml").write_text(STUDY)
    address = client.scheduler.address.split("://")[1]
    said = call("s.toml", "--cluster", address, "--out", "there", cwd=tmp_path)
    assert said.returncode == 0 and (tmp_path / "there" / "report.html").exists(), said.stderr


@pytest.mark.parametrize(
    ("queue", "lines"),
    [
        (
            "slurm",
            ["#SBATCH -J fulgurite-quickstart", "#SBATCH -p short", "#SBATCH --cpus-per-task=8", "#SBATCH -t 00:30:00"],
        ),
        (
            "sge",
            ["#$ -N fulgurite-quickstart", "#$ -q short", "#$ -l h_rt=00:30:00", "#$ -pe smp 8", "#$ -l h_vmem=1908M"],
        ),
        (
            "pbs",
            [
                "#PBS -N fulgurite-quickstart",
                "#PBS -q short",
                "#PBS -l select=1:ncpus=8:mem=16GB",
                "#PBS -l walltime=00:30:00",
            ],
        ),
    ],
)
def test_batch_scripts(queue, lines):
    options = ["--cores", "8", "--memory", "16GB", "--walltime", "00:30:00", "--queue", "short"]
    said = call("quickstart", "--cluster", queue, *options, "--print-script")
    assert said.returncode == 0, said.stderr
    for line in lines:
        assert line in said.stdout.splitlines(), said.stdout
    # One process per core, with the interpreter that has the package.
    assert sys.executable in said.stdout and "--nworkers 8" in said.stdout and "--nthreads 1" in said.stdout


@pytest.mark.parametrize(
    ("queue", "account", "directive"),
    [
        ("slurm", "#SBATCH -A lab", "#SBATCH --exclusive"),
        ("sge", "#$ -P lab", "#$ --exclusive"),
        ("pbs", "#PBS -A lab", "#PBS --exclusive"),
    ],
)
def test_batch_scripts_have_an_account_and_further_directives(queue, account, directive):
    said = call(
        "quickstart",
        "--cluster",
        queue,
        "--account",
        "lab",
        "--directive=--exclusive",
        "--directive=-pe mpi 4",
        "--cores",
        4,
        "--print-script",
    )
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    assert account in lines and directive in lines and sum("-pe " in line for line in lines) == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--memory", "much"], "--memory much is not a size from 1 MiB on; accepted: a size, such as 16GB"),
        (["--memory", "16"], "--memory 16 is not a size from 1 MiB on"),
        (["--walltime", "soon"], "--walltime soon is not a time; accepted: "),
        (["--walltime", "00:00:00"], "--walltime 00:00:00 is not a time"),
        (["--walltime", "01:00:00\n#SBATCH -A other"], "--walltime"),
        (["--queue", "a b"], "--queue 'a b' is not a name"),
        (["--account", ""], "--account '' is not a name"),
        (["--directive", "exclusive"], "--directive 'exclusive' is not an option"),
    ],
)
def test_a_batch_job_that_no_queue_would_take_is_refused(options, sentence):
    said = call("quickstart", "--cluster", "slurm", "--print-script", *options)
    assert (
        (said.returncode, said.stdout) == (2, "")
        and said.stderr.startswith("fulgurite-sweep: ")
        and sentence in said.stderr
    )


@pytest.mark.parametrize(
    ("script", "sentence"),
    [
        (None, "--cluster slurm: there is no command sbatch on this machine; accepted: "),
        (
            "echo 'sbatch: error: invalid partition specified: nope' >&2; exit 1",
            "the batch job was refused: sbatch: error: invalid partition specified: nope",
        ),
        ("echo accepted", "the batch job was refused: "),
    ],
)
def test_a_queue_that_refuses_a_job_ends_the_command(tmp_path, script, sentence):
    if script is not None:
        (tmp_path / "bin").mkdir()
        (tmp_path / "bin" / "sbatch").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bin" / "sbatch").chmod(0o755)
    path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
    said = call(
        "quickstart",
        "--quick",
        "--cluster",
        "slurm",
        "--workers",
        2,
        cwd=tmp_path,
        timeout=60,
        env={**os.environ, "PATH": path},
    )
    assert said.returncode == 1 and said.stdout == ""
    *before, last = said.stderr.splitlines()
    assert last.startswith("fulgurite-sweep: --cluster slurm: ") and sentence in last and len(before) <= 1, said.stderr


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (["nothing"], "unknown study `nothing`"),
        (["quickstart", "--cluster", "mars"], "--cluster mars is unknown; accepted: local, slurm, sge, pbs"),
        (["quickstart", "--workers", "0"], "--workers 0 runs nothing"),
        (["quickstart", "--print-script"], "--print-script: local has no batch jobs"),
        (["quickstart", "--seed", "-1"], "--seed"),
    ],
)
def test_invalid_arguments_are_refused(typed, sentence, tmp_path):
    said = call(*typed, cwd=tmp_path)
    assert said.returncode == 2 and said.stdout == "" and said.stderr.startswith("fulgurite-sweep: ")
    assert sentence in said.stderr and len(said.stderr.splitlines()) == 1 and not list(tmp_path.iterdir())


def test_a_scheduler_that_does_not_answer(tmp_path):
    said = call("quickstart", "--cluster", "127.0.0.1:1", "--quick", cwd=tmp_path)
    assert said.returncode == 1 and said.stderr.splitlines()[-1].startswith("fulgurite-sweep: ")
    assert cluster.parser().prog == "fulgurite-sweep"


def test_the_example_of_the_book(tmp_path):
    page = pathlib.Path(__file__).resolve().parents[2] / "docs" / "how-to" / "cluster.md"
    (block,) = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "example.py").write_text(block)
    said = subprocess.run([sys.executable, "example.py"], capture_output=True, text=True, cwd=tmp_path)
    assert said.stdout == "60 0\n", said.stderr
