"""The command ``fulgurite-sweep``: a study's runs on a cluster, into a Parquet data set, from which it goes on when it is called again.

``local`` is a process for each core of this machine. ``slurm``, ``sge`` and ``pbs`` write batch jobs (``--print-script`` shows them) that
become the workers. ``HOST:PORT`` is a scheduler of Dask that runs already.
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

#: The queues that write batch jobs, and the class of dask-jobqueue that does.
QUEUES = {"slurm": "SLURMCluster", "sge": "SGECluster", "pbs": "PBSCluster"}
#: What dask-jobqueue calls the account that jobs are charged to.
ACCOUNTS = {"slurm": "account", "sge": "project", "pbs": "account"}

#: What a process of ``local`` does first. A terminal interrupts all processes, but this command ends its own; they would only print where
#: they were.
_UNMOVED = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    command = argparse.ArgumentParser(prog="fulgurite-sweep", description="Runs a study on a cluster, and resumes it.")
    command.add_argument("study", help="a built-in study, or a TOML file")
    command.add_argument("--cluster", default="local", metavar="local|slurm|sge|pbs|HOST:PORT", help="where (default: local)")
    command.add_argument("--workers", type=int, metavar="N", help="processes, or batch jobs (default: one for each core; 4 jobs)")
    command.add_argument("--out", metavar="DIR", help="folder (default: results/STUDY)")
    command.add_argument("--quick", action="store_true", help="smaller, as the study says")
    command.add_argument("--seed", help="seed, in place of the study's")
    command.add_argument("--batch", type=int, default=BATCH, metavar="N", help=f"runs in a task (default: {BATCH})")
    command.add_argument("--cores", type=int, default=1, metavar="N", help="cores of a batch job, each a process (default: 1)")
    command.add_argument("--memory", default="4GB", help="memory of a batch job (default: 4GB)")
    command.add_argument("--walltime", default="01:00:00", help="time of a batch job (default: 01:00:00)")
    command.add_argument("--queue", help="queue or partition of the batch jobs")
    command.add_argument("--account", help="account or project that the batch jobs are charged to")
    command.add_argument(
        "--directive", action="append", default=[], metavar="TEXT", help="a further directive of the batch job, such as --directive=--exclusive; may be repeated"
    )
    command.add_argument("--print-script", action="store_true", help="print the batch job and end")
    command.add_argument("--version", action="version", version=f"fulgurite {__version__}")
    return command


def queue(arguments: argparse.Namespace) -> Any:
    """The cluster of batch jobs that is asked for. Nothing is submitted yet."""
    try:
        import dask_jobqueue
    except ImportError as error:
        raise needs("dask-jobqueue", "cluster") from error
    settings: Dict[str, Any] = {
        "cores": arguments.cores,
        # A run takes one core, and a process its own trace.
        "processes": arguments.cores,
        "memory": arguments.memory,
        "walltime": arguments.walltime,
        "job_name": f"fulgurite-{pathlib.Path(arguments.study).stem}",
        "python": sys.executable,
        # The usual port may be another program's, of which Dask would warn.
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
        # Grid Engine counts memory for each core, in powers of two.
        settings["resource_spec"] = f"h_vmem={-(-bytes_of(arguments.memory) // (arguments.cores << 20))}M"
        # Sites name their parallel environments; this is the usual name.
        if arguments.cores > 1 and not any(directive.startswith("-pe ") for directive in directives):
            directives.append(f"-pe smp {arguments.cores}")
    made = getattr(dask_jobqueue, QUEUES[arguments.cluster])
    return type(made.__name__, (made,), {"job_cls": recording(made.job_cls)})(**settings, job_extra_directives=directives)


def recording(job: Any) -> Any:
    """The class of a batch job, that notes in ``outcomes`` what has become of each submission. Dask itself tells nobody, and waits for
    workers that will never come."""

    from distributed.core import Status

    class Recording(job):  # type: ignore[misc]
        outcomes: List[Optional[Exception]] = []

        async def start(self) -> None:
            try:
                await super().start()
            except (OSError, RuntimeError, ValueError) as error:
                self.outcomes.append(error)
                # For Dask it is a worker like the others, until all of them are closed.
                self.status = Status.running
            else:
                self.outcomes.append(None)

        async def close(self) -> None:
            await super().close()
            self.status = Status.closed

    return Recording


def submit(cluster: Any, name: str, jobs: int) -> None:
    """Submits so many batch jobs. All must be taken: where one is refused, so would be the others."""
    cluster.scale(jobs=jobs)
    outcomes = cluster.job_cls.outcomes
    while len(outcomes) < jobs and not any(outcomes):
        time.sleep(0.02)
    for error in filter(None, outcomes):
        # What the command itself has said stands last.
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        raise RunError(f"--cluster {name}: the batch job was refused: {lines[-1] if lines else type(error).__name__}")


def bytes_of(memory: str) -> int:
    """A size in bytes; 0 for what is none."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT])(i?)B?", memory, re.IGNORECASE)
    if found is None:
        return 0
    return int(float(found[1]) * (1024 if found[3] else 1000) ** (" KMGT".index(found[2].upper())))


def connect(arguments: argparse.Namespace) -> "distributed.Client":
    """A client of the cluster that is asked for."""
    try:
        import distributed
    except ImportError as error:
        raise needs("dask", "cluster") from error
    name: str = arguments.cluster
    if name == "local":
        # A process each: runs of one process would share what it keeps, and a run that ends its process ends no other.
        # Its page is at a free port, and for this machine alone.
        return distributed.Client(
            n_workers=arguments.workers or os.cpu_count(), threads_per_worker=1, dashboard_address="127.0.0.1:0", preload=_UNMOVED
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
    """Refuses what cannot be, before anything is made."""
    known = ["local", *QUEUES]
    if arguments.cluster not in known and not re.fullmatch(r"(\w+://)?[^\s/:]+:\d+", arguments.cluster):
        raise RequestError(f"--cluster {arguments.cluster} is unknown; accepted: {', '.join(known)}, or HOST:PORT of a scheduler")
    for name in ("workers", "batch", "cores"):
        value: Optional[int] = getattr(arguments, name)
        if value is not None and value < 1:
            raise RequestError(f"--{name} {value} runs nothing; accepted: a number from 1 on")
    if arguments.cluster in QUEUES:
        check_job(arguments)
    if arguments.print_script and arguments.cluster not in QUEUES:
        raise RequestError(f"--print-script: {arguments.cluster} has no batch jobs; accepted: {', '.join(QUEUES)}")


def check_job(arguments: argparse.Namespace) -> None:
    """Refuses a batch job that no queue would take, or take for another."""
    if bytes_of(arguments.memory) < 1 << 20:
        raise RequestError(f"--memory {arguments.memory} is no memory for a process; accepted: a size, such as 16GB")
    days = r"(\d+-)?" if arguments.cluster == "slurm" else ""
    if not re.fullmatch(days + r"\d+:[0-5]\d:[0-5]\d", arguments.walltime) or not re.search("[1-9]", arguments.walltime):
        raise RequestError(f"--walltime {arguments.walltime} is no time; accepted: hours, minutes and seconds, such as 01:00:00")
    for name in ("queue", "account"):
        value: Optional[str] = getattr(arguments, name)
        if value is not None and not re.fullmatch(r"[^\s\x00-\x1f-][^\s\x00-\x1f]*", value):
            raise RequestError(f"--{name} {value!r} is no name; accepted: a name without blanks")
    for directive in arguments.directive:
        if not re.fullmatch(r"-[^\x00-\x1f]+", directive):
            raise RequestError(f"--directive {directive!r} is no option; accepted: one as the queue's command takes it, such as --directive=--exclusive")
    command = "sbatch" if arguments.cluster == "slurm" else "qsub"
    if not arguments.print_script and shutil.which(command) is None:
        raise RunError(f"--cluster {arguments.cluster}: there is no command {command} on this machine; accepted: a machine that submits batch jobs")


def run(arguments: argparse.Namespace) -> int:
    """Does what is asked for; the exit code."""
    check(arguments)
    study = Study(arguments.study)
    if arguments.print_script:
        with queue(arguments) as cluster:
            print(cluster.job_script(), end="")
        return 0
    out = pathlib.Path(arguments.out) if arguments.out is not None else pathlib.Path("results") / study.name
    parts, runs = study.parts(quick=arguments.quick, seed=arguments.seed)
    # Before a cluster is started.
    _native.check([run.native() for run in runs])
    known = DataSet(out / "runs").known()
    print(f"{len(runs)} runs, {len(known)} of which may be in {out / 'runs'} already", file=sys.stderr)
    with connect(arguments) as client:
        result = sweep(runs, client=client, out=out / "runs", batch=arguments.batch, on_error="keep", progress=sys.stderr.isatty())
    return end(arguments, study, parts, result, out)


def end(arguments: argparse.Namespace, study: Study, parts: List[Optional[str]], result: Result, out: pathlib.Path) -> int:
    """Writes the table, and the report where no run has failed; the exit code."""
    rows = [{**row, "part": parts[run]} for row, run in zip(result, result._of_run)]
    table = Result(_native.Table.from_rows(rows))
    table.to_csv(out / "table.csv")
    print(f"table:  {out / 'table.csv'}, {len(table)} rows")
    for failure in result.failures[:10]:
        print(f"failed: {failure.error}", file=sys.stderr)
    if result.failures:
        print(
            f"fulgurite-sweep: {len(result.failures)} of {len(result.runs)} runs failed; the others are kept, and the same command tries again",
            file=sys.stderr,
        )
        return 1
    again = f"fulgurite-sweep {arguments.study}" + (" --quick" if arguments.quick else "") + (f" --seed {arguments.seed}" if arguments.seed else "")
    page = study.draw(table, again, quick=arguments.quick)
    _native.write_file(os.fspath(out / "report.html"), page.encode())
    print(f"report: {out / 'report.html'}")
    return 0


def main(typed: Optional[Sequence[str]] = None) -> int:
    """The command. Exits with 0 when all runs have ended well, 1 where one has failed, 2 where the request was wrong."""
    arguments = parser().parse_args(typed)
    try:
        return run(arguments)
    except FulguriteError as error:
        print(f"fulgurite-sweep: {error}", file=sys.stderr)
        return 2 if isinstance(error, (RequestError, ImportError)) else 1
    except KeyboardInterrupt:
        print("fulgurite-sweep: interrupted; what has ended is kept, and the same command goes on from it", file=sys.stderr)
        return 130
    except OSError as error:
        # A scheduler that does not answer, for one.
        print(f"fulgurite-sweep: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
