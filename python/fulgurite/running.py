"""Executes one run, or many runs in parallel."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Iterable, List, NamedTuple, Optional, Tuple, Union, overload

from . import _native, dataset, errors
from .description import Axis, Run, Value, _text, grid
from .errors import RequestError
from .fields import explain
from .progress import Watch, Watching
from .result import Failure, Result

if TYPE_CHECKING:
    import distributed


@overload
def run(run: Run, *, progress: Watch = True) -> Result: ...


@overload
def run(run: str, *, progress: Watch = True, **settings: "Value | type | None") -> Result: ...


def run(run: Union[Run, str], *, progress: Watch = True, **settings: Any) -> Result:
    """Executes a run.

    ``run`` is a :class:`fulgurite.Run`, or the name of a command (``pool``, ``gc``, ``replay``, ``bench``,
    ``profile``) with its settings as keywords::

        fulgurite.run("pool", workload="mixed-skewed", write_back="ace", ops="50K")

    The run is executed with the GIL (the interpreter's lock) released, and Ctrl-C cancels it.

    :param progress: see :data:`fulgurite.progress.Watch`.
    :raises RequestError: if the run is invalid; nothing was executed.
    :raises RunError: if it failed.
    """
    if isinstance(run, Run):
        if settings:
            raise RequestError(
                f"{', '.join(settings)}: a Run already has its settings; accepted: dataclasses.replace, or the "
                "name of a command"
            )
        return _execute([run], 1, False, progress, [])
    given = {name: value for name, value in settings.items() if value is not None}
    runs = grid(run, **given)
    if len(runs) != 1:
        raise RequestError(
            f"the settings describe {len(runs)} runs; accepted: one value for each setting, or fulgurite.sweep"
        )
    return _execute(runs, 1, False, progress, list(given))


def sweep(
    runs: Union[str, Run, Iterable[Run]],
    *,
    threads: Optional[int] = None,
    on_error: str = "raise",
    out: "Union[str, os.PathLike[str], None]" = None,
    client: "Optional[distributed.Client]" = None,
    batch: Optional[int] = None,
    progress: Watch = True,
    **axes: Axis,
) -> Result:
    """Executes runs in parallel and returns their rows as one table, in the order of the runs.

    ``runs`` are :class:`fulgurite.Run` objects, for example from :func:`fulgurite.grid`, or the name of a command
    with its settings as keywords, each with a value or a list of values::

        fulgurite.sweep("pool", workload="mixed-skewed", write_back=["single", "ace"], seed=range(5))

    All runs are checked before the first begins. The number of threads does not change the result.

    :param threads: the number of runs in parallel; by default the number of cores.
    :param on_error: with ``"raise"`` a failed run ends the sweep. With ``"keep"`` failed runs are listed in
        :attr:`Result.failures`, and the others continue.
    :param out: a folder for a Parquet data set, to which finished runs are added. A sweep into the same folder
        continues from them. This needs pyarrow.
    :param client: a :class:`distributed.Client` whose workers execute the runs. Their number does not change the
        result.
    :param batch: the number of runs that are executed together, with ``out`` or ``client``; by default 32. All
        runs of a batch have the same workload, so that its trace is decoded once.
    :param progress: see :data:`fulgurite.progress.Watch`.
    :raises RequestError: if a run is invalid and ``on_error`` is ``"raise"``.
    :raises RunError: if a run failed and ``on_error`` is ``"raise"``.
    """
    if on_error not in ("raise", "keep"):
        raise RequestError(f"on_error={on_error!r} is unknown; accepted: 'raise', 'keep'")
    if axes and not isinstance(runs, str):
        raise RequestError(
            f"{', '.join(axes)}: runs already have their settings; accepted: the name of a command, or runs alone"
        )
    listed = grid(runs, **axes) if isinstance(runs, str) else _all_runs(runs)
    if out is None and client is None:
        if batch is not None:
            raise RequestError(
                "batch is for sweeps into a data set or on a cluster; accepted: batch together with out or client"
            )
        return _execute(listed, threads, on_error == "keep", progress, list(axes))
    if threads is not None and threads < 1:
        raise RequestError(f"threads={threads} runs nothing; accepted: a number from 1 on")
    return dataset.sweep(
        listed,
        client=client,
        out=out,
        batch=batch,
        threads=threads,
        on_error=on_error,
        progress=progress,
        axes=list(axes),
    )


def _all_runs(runs: Union[Run, Iterable[Run]]) -> List[Run]:
    listed: List[Run] = [runs] if isinstance(runs, Run) else list(runs)
    for run in listed:
        if not isinstance(run, Run):
            raise RequestError(f"{run!r} is a {type(run).__name__}; accepted: fulgurite.Run")
    return listed


def _execute(runs: List[Run], threads: Optional[int], keeps_going: bool, progress: Watch, axes: List[str]) -> Result:
    if threads is not None and threads < 1:
        raise RequestError(f"threads={threads} runs nothing; accepted: a number from 1 on")
    asked = [run.native() for run in runs]
    with Watching(progress) as watching:
        table, of_run, failed = _native.execute(asked, threads, keeps_going, watching.listener)
    failures = [Failure(runs[at], getattr(errors, kind)(sentence)) for at, kind, sentence in failed]
    commands = {run.command for run in runs}
    return Result(table, commands.pop() if len(commands) == 1 else None, axes, runs, of_run, failures)


class Outlook(NamedTuple):
    """The estimated cost of runs."""

    #: The number of runs.
    runs: int
    #: The estimated memory in bytes.
    needed_bytes: int
    #: The lower and the upper bound of the estimated time, in seconds.
    least_s: float
    most_s: float
    #: The estimated cost in one sentence.
    sentence: str


def outlook(runs: Union[Run, Iterable[Run]], *, threads: Optional[int] = None) -> Outlook:
    """Estimates the cost of runs. Nothing is executed or measured."""
    table, sentence = _native.outlook([run.native() for run in _all_runs(runs)], threads)
    row: Dict[str, Any] = table.row(0)
    return Outlook(row["runs"], row["needed_bytes"], row["estimate_least_s"], row["estimate_most_s"], sentence)


class Profile(NamedTuple):
    """The asymmetry and the concurrency of a drive for requests of one size."""

    #: The text that names the device.
    device: str
    #: The size of a request in bytes.
    page_bytes: int
    #: The highest read throughput divided by the highest write throughput.
    alpha: float
    #: The smallest number of users that reaches 95 % of the highest read throughput.
    k_r: int
    #: The smallest number of users that reaches 95 % of the highest write throughput.
    k_w: int
    #: The highest read throughput, in requests per second.
    read_iops_max: float
    #: The highest write throughput, in requests per second.
    write_iops_max: float


def profile(
    device: str, page: Union[int, str] = "4KiB", *, seed: Union[int, str] = 42, progress: Watch = True
) -> Profile:
    """Measures a drive: alpha, k_r and k_w, as the ACE study (ICDE 2023) defines them.

    For several drives or sizes in one table, and for curves, use
    ``fulgurite.sweep("profile", device=[…], curve=True)``.

    :param device: a preset, a preset with changes, or ``file:PATH``.
    :param page: request size in bytes.
    """
    row: Dict[str, Any] = run("profile", device=device, page=_text("page", page), seed=seed, progress=progress)[0]
    return Profile(*(row[name] for name in Profile._fields))


def names(kind: Optional[str] = None) -> Result:
    """Returns all names for descriptions with their options, as printed by ``fulgurite list``.

    :param kind: ``devices``, ``replacement``, ``workloads``, …; by default all kinds.
    """
    return Result(_native.names(kind))


class Verdict(NamedTuple):
    """Whether a conclusion holds in a study's rows."""

    #: The conclusion, in a sentence.
    says: str
    #: Whether the conclusion holds; None if a quick run is too short to tell. False too if the figures are too far
    #: from a published one.
    holds: Optional[bool]
    #: The measured figures, and the rows in which they occur.
    figure: str


class Study:
    """A study: grids of runs with comparisons, checks and plots.

    :param name: a built-in study (:func:`fulgurite.studies` lists them), or the path of a TOML file.
    """

    def __init__(self, name: Union[str, "os.PathLike[str]"]) -> None:
        self._study = _native.Study.open(os.fspath(name))

    @classmethod
    def from_toml(cls, text: str, name: str = "study") -> Study:
        """Parses a study from TOML text. Its folder and its errors use ``name``."""
        study = cls.__new__(cls)
        study._study = _native.Study.read(name, text)
        return study

    @property
    def name(self) -> str:
        """The name of the study."""
        return self._study.name

    @property
    def title(self) -> str:
        """The title of the study."""
        return self._study.title

    def runs(self, *, quick: bool = False, seed: Union[int, str, None] = None) -> List[Run]:
        """Returns the runs of the study, which can be modified and passed to a sweep."""
        return self.parts(quick=quick, seed=seed)[1]

    def parts(
        self, *, quick: bool = False, seed: Union[int, str, None] = None
    ) -> Tuple[List[Optional[str]], List[Run]]:
        """Returns the name of each run's part (None in a study without parts), and the runs."""
        grids = self._study.grids(quick, None if seed is None else str(seed))
        pairs = [(part, run) for part, command, settings in grids for run in grid(command, **settings)]
        return [part for part, _ in pairs], [run for _, run in pairs]

    def draw(self, result: Result, made_by: str, *, quick: bool = False) -> str:
        """Renders the study's report for a table that was made elsewhere, as an HTML page.

        :param made_by: the command that reproduces the table, for the reader.
        :param quick: whether the runs are those of the study's smaller grid.
        """
        return self._study.draw(result._table, [made_by], quick)

    def run(
        self,
        out: Union[str, "os.PathLike[str]", None] = None,
        *,
        quick: bool = False,
        seed: Union[int, str, None] = None,
        threads: Optional[int] = None,
        resume: bool = False,
        progress: Watch = True,
    ) -> StudyResult:
        """Runs the study and writes its folder: the table, the study and ``report.html``.

        :param out: the folder, by default ``results/NAME``.
        :param quick: execute the smaller grid that the study defines.
        :param seed: replaces the study's seed.
        :param resume: continue from the finished runs that an interrupted attempt left in the folder.
        """
        with Watching(progress) as watching:
            table, finding, verdicts, report = self._study.run(
                None if out is None else os.fspath(out),
                quick,
                None if seed is None else str(seed),
                threads,
                resume,
                watching.listener,
            )
        return StudyResult(table, finding, [Verdict(*verdict) for verdict in verdicts], str(report))

    def __repr__(self) -> str:
        return f"<fulgurite.Study {self.name}: {self.title}>"


class StudyResult(Result):
    """The result of a study."""

    def __init__(self, table: _native.Table, finding: str, verdicts: List[Verdict], report: str) -> None:
        super().__init__(table)
        self._finding = finding
        #: The conclusions that the study checks.
        self.verdicts = verdicts
        #: The path of the report.
        self.report_path = report

    @property
    def finding(self) -> Optional[str]:
        """The finding in one sentence."""
        return self._finding or None


def studies() -> Dict[str, str]:
    """Returns the built-in studies by name, with their titles."""
    return dict(_native.studies())


explain(globals())

__all__ = [
    "Outlook",
    "Profile",
    "Study",
    "StudyResult",
    "Verdict",
    "names",
    "outlook",
    "profile",
    "run",
    "studies",
    "sweep",
]
