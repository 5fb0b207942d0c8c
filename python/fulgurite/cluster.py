"""The command ``fulgurite-sweep``: a study's runs on a cluster, into a Parquet data set, from which it goes on when it is called again.

``local`` is a process for each core of this machine. ``slurm``, ``sge`` and ``pbs`` write batch jobs (``--print-script`` shows them) that
become the workers. ``HOST:PORT`` is a scheduler of Dask that runs already.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import re
import sys
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Sequence

from . import __version__, _native
from .dataset import BATCH, DataSet
from .errors import FulguriteError, RequestError
from .result import Result, needs
from .running import Study, sweep

if TYPE_CHECKING:
    import distributed

#: The queues that write batch jobs, and the class of dask-jobqueue that does.
QUEUES = {"slurm": "SLURMCluster", "sge": "SGECluster", "pbs": "PBSCluster"}


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
    }
    if arguments.queue is not None:
        settings["queue"] = arguments.queue
    if arguments.cluster == "pbs":
        settings["resource_spec"] = f"select=1:ncpus={arguments.cores}:mem={arguments.memory}"
    return getattr(dask_jobqueue, QUEUES[arguments.cluster])(**settings)


def connect(arguments: argparse.Namespace) -> "distributed.Client":
    """A client of the cluster that is asked for."""
    try:
        import distributed
    except ImportError as error:
        raise needs("dask", "cluster") from error
    name: str = arguments.cluster
    if name == "local":
        # A process each: runs of one process would share what it keeps, and a run that ends its process ends no other.
        return distributed.Client(n_workers=arguments.workers or os.cpu_count(), threads_per_worker=1, dashboard_address=None)
    if name in QUEUES:
        cluster = queue(arguments)
        cluster.scale(jobs=arguments.workers or 4)
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
    if arguments.print_script and arguments.cluster not in QUEUES:
        raise RequestError(f"--print-script: {arguments.cluster} has no batch jobs; accepted: {', '.join(QUEUES)}")


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
