"""Implements the command ``fulgurite-sweep``, which executes the runs of a study on a cluster and stores
their rows in a Parquet data set. When the command is repeated, it continues from the data set.

``local`` starts one process per core of this machine. ``slurm``, ``sge`` and ``pbs`` submit batch jobs
(``--print-script`` shows them), which become the workers. ``HOST:PORT`` is a running Dask scheduler.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import shutil
import sys
import time
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

from . import __version__, _native
from .dataset import BATCH, DataSet
from .errors import FulguriteError, RequestError, RunError
from .result import Result, needs
from .running import Study, sweep

if TYPE_CHECKING:
    import distributed

#: The queues for batch jobs, and the class of dask-jobqueue for each.
QUEUES = {"slurm": "SLURMCluster", "sge": "SGECluster", "pbs": "PBSCluster"}
#: The name in dask-jobqueue of the account that jobs are charged to.
ACCOUNTS = {"slurm": "account", "sge": "project", "pbs": "account"}

#: The first statement of a ``local`` process, which makes it ignore Ctrl-C. Ctrl-C interrupts all processes
#: of a terminal, so each worker would print a stack trace. The command ends its workers itself.
_UNMOVED = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


def parser() -> argparse.ArgumentParser:
    """Returns the parser of the command line."""
    command = argparse.ArgumentParser(prog="fulgurite-sweep", description="Run a study on a cluster, or resume it.")
    command.add_argument("study", help="a built-in study, or a TOML file")
    command.add_argument(
        "--cluster", default="local", metavar="local|slurm|sge|pbs|HOST:PORT", help="where to run (default: local)"
    )
    command.add_argument(
        "--workers", type=int, metavar="N", help="number of processes or batch jobs (default: one per core; 4 jobs)"
    )
    command.add_argument("--out", metavar="DIR", help="output folder (default: results/STUDY)")
    command.add_argument("--quick", action="store_true", help="run the smaller grid that the study defines")
    command.add_argument("--seed", help="replace the study's seed")
    command.add_argument("--batch", type=int, default=BATCH, metavar="N", help=f"runs per task (default: {BATCH})")
    command.add_argument(
        "--cores", type=int, default=1, metavar="N", help="cores per batch job, with one process each (default: 1)"
    )
    command.add_argument("--memory", default="4GB", help="memory per batch job (default: 4GB)")
    command.add_argument("--walltime", default="01:00:00", help="time limit of a batch job (default: 01:00:00)")
    command.add_argument("--queue", help="queue or partition of the batch jobs")
    command.add_argument("--account", help="account or project that the batch jobs are charged to")
    command.add_argument(
        "--directive",
        action="append",
        default=[],
        metavar="TEXT",
        help="a further directive of the batch job, such as --directive=--exclusive; may be repeated",
    )
    command.add_argument("--print-script", action="store_true", help="print the batch job and exit")
    command.add_argument("--version", action="version", version=f"fulgurite {__version__}")
    return command


def queue(arguments: argparse.Namespace) -> Any:
    """Returns the requested cluster of batch jobs. Nothing is submitted yet."""
    try:
        import dask_jobqueue
    except ImportError as error:
        raise needs("dask-jobqueue", "cluster") from error
    settings: Dict[str, Any] = {
        "cores": arguments.cores,
        # Use one process per core, because a run uses one core. Each process keeps its own traces.
        "processes": arguments.cores,
        "memory": arguments.memory,
        "walltime": arguments.walltime,
        "job_name": f"fulgurite-{pathlib.Path(arguments.study).stem}",
        "python": sys.executable,
        # Use any free port, because Dask would warn if another program used its default port.
        "scheduler_options": {"dashboard_address": ":0"},
    }
    directives = list(arguments.directive)
    if arguments.queue is not None:
        settings["queue"] = arguments.queue
    if arguments.account is not None:
        settings[ACCOUNTS[arguments.cluster]] = arguments.account
    if arguments.cluster == "pbs":
        settings["resource_spec"] = f"select=1:ncpus={arguments.cores}:mem={arguments.memory}"
    if arguments.cluster == "sge":
        # Grid Engine counts memory per core, in powers of two.
        settings["resource_spec"] = f"h_vmem={-(-bytes_of(arguments.memory) // (arguments.cores << 20))}M"
        # Each site names its parallel environments; `smp` is the usual name.
        if arguments.cores > 1 and not any(directive.startswith("-pe ") for directive in directives):
            directives.append(f"-pe smp {arguments.cores}")
    made = getattr(dask_jobqueue, QUEUES[arguments.cluster])
    return type(made.__name__, (made,), {"job_cls": recording(made.job_cls)})(
        **settings, job_extra_directives=directives
    )


def recording(job: Any) -> Any:
    """Extends the class of a batch job, to record the outcome of each submission in ``outcomes``. Dask itself
    does not report failed submissions, and would wait for their workers for ever."""

    from distributed.core import Status

    class Recording(job):  # type: ignore[misc]
        outcomes: List[Optional[Exception]] = []

        async def start(self) -> None:
            try:
                await super().start()
            except (OSError, RuntimeError, ValueError) as error:
                self.outcomes.append(error)
                # With this status, Dask treats the refused job like the other workers until all of them are
                # closed.
                self.status = Status.running
            else:
                self.outcomes.append(None)

        async def close(self) -> None:
            await super().close()
            self.status = Status.closed

    return Recording


def submit(cluster: Any, name: str, jobs: int) -> None:
    """Submits ``jobs`` batch jobs. If one is refused, the command fails, because the others would be refused too."""
    cluster.scale(jobs=jobs)
    outcomes = cluster.job_cls.outcomes
    while len(outcomes) < jobs and not any(outcomes):
        time.sleep(0.02)
    for error in filter(None, outcomes):
        # The message of the queue's own command is the last line.
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise RunError(f"--cluster {name}: the batch job was refused: {lines[-1] if lines else type(error).__name__}")


def bytes_of(memory: str) -> int:
    """Returns the size in bytes; 0 if the text is not a size."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT])(i?)B?", memory, re.IGNORECASE)
    if found is None:
        return 0
    return int(float(found[1]) * (1024 if found[3] else 1000) ** (" KMGT".index(found[2].upper())))


def connect(arguments: argparse.Namespace) -> "distributed.Client":
    """Returns a client of the requested cluster."""
    try:
        import distributed
    except ImportError as error:
        raise needs("dask", "cluster") from error
    name: str = arguments.cluster
    if name == "local":
        # One process per worker: runs in one process would share caches, and a crashing run would end the others.
        # Dask's status page uses a free port and is visible only on this machine.
        return distributed.Client(
            n_workers=arguments.workers or os.cpu_count(),
            threads_per_worker=1,
            dashboard_address="127.0.0.1:0",
            preload=_UNMOVED,
        )
    if name in QUEUES:
        cluster = queue(arguments)
        try:
            submit(cluster, name, arguments.workers or 4)
        except BaseException:
            cluster.close()
            raise
        return distributed.Client(cluster)
    return distributed.Client(name if "://" in name else f"tcp://{name}", timeout="10s")


def check(arguments: argparse.Namespace) -> None:
    """Checks the arguments before anything is created."""
    known = ["local", *QUEUES]
    if arguments.cluster not in known and not re.fullmatch(r"(\w+://)?[^\s/:]+:\d+", arguments.cluster):
        raise RequestError(
            f"--cluster {arguments.cluster} is unknown; accepted: {', '.join(known)}, or HOST:PORT of a scheduler"
        )
    for name in ("workers", "batch", "cores"):
        value: Optional[int] = getattr(arguments, name)
        if value is not None and value < 1:
            raise RequestError(f"--{name} {value} runs nothing; accepted: a number from 1 on")
    if arguments.cluster in QUEUES:
        check_job(arguments)
    if arguments.print_script and arguments.cluster not in QUEUES:
        raise RequestError(f"--print-script: {arguments.cluster} has no batch jobs; accepted: {', '.join(QUEUES)}")


def check_job(arguments: argparse.Namespace) -> None:
    """Checks the options of batch jobs that a queue would refuse or misread."""
    if bytes_of(arguments.memory) < 1 << 20:
        raise RequestError(
            f"--memory {arguments.memory} is not a size from 1 MiB on; accepted: a size, such as 16GB"
        )
    days = r"(\d+-)?" if arguments.cluster == "slurm" else ""
    if not re.fullmatch(days + r"\d+:[0-5]\d:[0-5]\d", arguments.walltime) or not re.search(
        "[1-9]", arguments.walltime
    ):
        raise RequestError(
            f"--walltime {arguments.walltime} is not a time; accepted: hours, minutes and seconds, such as 01:00:00"
        )
    for name in ("queue", "account"):
        value: Optional[str] = getattr(arguments, name)
        if value is not None and not re.fullmatch(r"[^\s\x00-\x1f-][^\s\x00-\x1f]*", value):
            raise RequestError(f"--{name} {value!r} is not a name; accepted: a name without blanks")
    for directive in arguments.directive:
        if not re.fullmatch(r"-[^\x00-\x1f]+", directive):
            raise RequestError(
                f"--directive {directive!r} is not an option; accepted: an option of the queue's command, such "
                "as --directive=--exclusive"
            )
    command = "sbatch" if arguments.cluster == "slurm" else "qsub"
    if not arguments.print_script and shutil.which(command) is None:
        raise RunError(
            f"--cluster {arguments.cluster}: there is no command {command} on this machine; accepted: a machine "
            "that submits batch jobs"
        )


def run(arguments: argparse.Namespace) -> int:
    """Runs the command and returns the exit code."""
    check(arguments)
    study = Study(arguments.study)
    if arguments.print_script:
        with queue(arguments) as cluster:
            print(cluster.job_script(), end="")
        return 0
    out = pathlib.Path(arguments.out) if arguments.out is not None else pathlib.Path("results") / study.name
    parts, runs = study.parts(quick=arguments.quick, seed=arguments.seed)
    # Check the runs first, because starting a cluster takes long.
    _native.check([run.native() for run in runs])
    known = DataSet(out / "runs").known()
    print(f"{len(runs)} runs, {len(known)} of which may be in {out / 'runs'} already", file=sys.stderr)
    with connect(arguments) as client:
        result = sweep(
            runs, client=client, out=out / "runs", batch=arguments.batch, on_error="keep", progress=sys.stderr.isatty()
        )
    return end(arguments, study, parts, result, out)


def end(
    arguments: argparse.Namespace, study: Study, parts: List[Optional[str]], result: Result, out: pathlib.Path
) -> int:
    """Writes the table, and the report if no run failed. Returns the exit code."""
    rows = [{**row, "part": parts[run]} for row, run in zip(result, result._of_run)]
    table = Result(_native.Table.from_rows(rows))
    table.to_csv(out / "table.csv")
    print(f"table:  {out / 'table.csv'}, {len(table)} rows")
    for failure in result.failures[:10]:
        print(f"failed: {failure.error}", file=sys.stderr)
    if result.failures:
        print(
            f"fulgurite-sweep: {len(result.failures)} of {len(result.runs)} runs failed; the others are kept, "
            "and the same command repeats the failed ones",
            file=sys.stderr,
        )
        return 1
    again = (
        f"fulgurite-sweep {arguments.study}"
        + (" --quick" if arguments.quick else "")
        + (f" --seed {arguments.seed}" if arguments.seed else "")
    )
    page = study.draw(table, again, quick=arguments.quick)
    _native.write_file(os.fspath(out / "report.html"), page.encode())
    print(f"report: {out / 'report.html'}")
    return 0


def main(typed: Optional[Sequence[str]] = None) -> int:
    """Runs the command. Returns 0 if all runs succeeded, 1 if one failed, 2 if the request was invalid."""
    arguments = parser().parse_args(typed)
    try:
        return run(arguments)
    except FulguriteError as error:
        print(f"fulgurite-sweep: {error}", file=sys.stderr)
        return 2 if isinstance(error, (RequestError, ImportError)) else 1
    except KeyboardInterrupt:
        print(
            "fulgurite-sweep: interrupted; finished runs are kept, and the same command continues from them",
            file=sys.stderr,
        )
        return 130
    except OSError as error:
        # This error is raised, for example, if the scheduler does not answer.
        print(f"fulgurite-sweep: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
