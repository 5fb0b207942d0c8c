"""Executes sweeps that survive an interrupt and can use a cluster.

Runs are executed in batches. All runs of a batch have the same workload, so that its trace is decoded once. Each
finished batch becomes a file of a Parquet data set. The file has one row for each row of a run, with the run's
key, the version and a hash of the trace beside the columns of the result. A sweep into a folder with such files
continues from them. A failed run is stored with its error, does not stop the others, and is repeated by the next
sweep.

The rows of the result are in the order of the runs, whatever the number of workers.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
from typing import (
    TYPE_CHECKING,
    Any,
    Callable,
    Dict,
    Iterable,
    Iterator,
    List,
    NamedTuple,
    Optional,
    Sequence,
    Set,
    Tuple,
    Union,
)

from . import _native, errors
from .description import Run
from .errors import RequestError, RunError
from .fields import explain
from .policies import text_of
from .progress import Watch, Watching
from .result import Cell, Failure, Result, needs

if TYPE_CHECKING:
    import distributed

#: Columns of the data set that are not columns of a result.
_OWN = ("key", "version", "input_hash", "error_class", "error")
#: The key in a file's metadata for the original types of its cells. All files share the same column types.
_EXACT = b"fulgurite"
#: The number of runs per batch. It is so large that the overhead of a task is small, and so small that an
#: interrupt loses little.
BATCH = 32


class Task(NamedTuple):
    """A run on its way through a sweep."""

    #: The position of the run in the result.
    at: int
    #: The identity of the run, which is a hash of the settings, the version and the trace.
    key: str
    #: The run, with an absolute path for its trace.
    run: Run
    #: The workload or the benchmark, which is equal in all runs of a batch.
    workload: str
    #: The path of the trace and its hash; None and empty if the workload is not a trace.
    trace: Optional[str]
    input_hash: str
    #: The texts in run ids of the policies of the run, by setting. A worker cannot compute these texts,
    #: because it has only the classes.
    named: Dict[str, str]


#: The outcome of a run: its rows, or the class and the message of its error.
Outcome = Tuple[List[Dict[str, Cell]], Optional[str], Optional[str]]

_HASHES: Dict[Tuple[str, int, int], str] = {}


def hash_of(path: str) -> str:
    """Returns a hash of a file. The hash is computed once, unless the file changes."""
    status = os.stat(path)
    key = (path, status.st_mtime_ns, status.st_size)
    if key not in _HASHES:
        whole = hashlib.sha256()
        with open(path, "rb") as file:
            while True:
                piece = file.read(1 << 20)
                if not piece:
                    break
                whole.update(piece)
        _HASHES[key] = whole.hexdigest()[:16]
    return _HASHES[key]


_GENERATORS: Set[str] = set()


def _trace_of(workload: object) -> Optional[str]:
    """Returns the path of a workload that is a trace, otherwise None."""
    if not isinstance(workload, str):
        return None
    if not _GENERATORS:
        _GENERATORS.update(str(name) for name in _native.names("workloads").column("name"))
    # A generator takes precedence over a file of the same name, as in Rust.
    if workload.split(":")[0] in _GENERATORS or not os.path.isfile(workload):
        return None
    return os.path.abspath(workload)


def task_of(at: int, run: Run) -> Task:
    """Returns the run as a task, with its key."""
    settings = run.settings()
    trace = _trace_of(settings.get("workload"))
    input_hash = hash_of(trace) if trace is not None else ""
    workload = str(settings.get("workload", settings.get("benchmark")))
    if trace is not None:
        settings["workload"] = trace
        run = Run.from_settings(run.command, settings)
        # Hash only the name of the trace, because the run is the same if the trace is in another folder.
        settings["workload"] = os.path.basename(trace)
    texts = {name: value if isinstance(value, str) else text_of(value) for name, value in settings.items()}
    asked = json.dumps([_native.VERSION, run.command, texts, input_hash], sort_keys=True)
    named = {name: texts[name] for name, value in settings.items() if not isinstance(value, str)}
    return Task(at, hashlib.sha256(asked.encode()).hexdigest()[:32], run, workload, trace, input_hash, named)


def batches(tasks: Iterable[Task], size: int) -> Iterator[List[Task]]:
    """Groups the tasks into batches with one workload each."""
    open_batches: Dict[str, List[Task]] = {}
    for task in tasks:
        batch = open_batches.setdefault(task.workload, [])
        batch.append(task)
        if len(batch) == size:
            yield batch
            batch.clear()
    yield from (batch for batch in open_batches.values() if batch)


def execute(
    batch: Sequence[Task], threads: Optional[int] = 1, listener: Optional[Callable[..., object]] = None
) -> List[Outcome]:
    """Executes a batch and returns the outcomes in its order. On a cluster the workers call this."""
    outcomes: List[Outcome] = [([], None, None) for _ in batch]
    runnable = []
    for at, task in enumerate(batch):
        if task.trace is not None:
            try:
                found = hash_of(task.trace)
            except OSError as error:
                outcomes[at] = ([], "RunError", f"the worker cannot read {task.trace}: {error}")
                continue
            if found != task.input_hash:
                outcomes[at] = (
                    [],
                    "RunError",
                    f"the worker finds another file at {task.trace}; accepted: the same file for all",
                )
                continue
        runnable.append(at)
    table, of_run, failed = _native.execute(
        [batch[at].run.native(batch[at].named) for at in runnable], threads, True, listener
    )
    rows = table.without_cost()
    for row, run in enumerate(of_run):
        outcomes[runnable[run]][0].append(rows.row(row))
    for run, kind, sentence in failed:
        outcomes[runnable[run]] = ([], kind, sentence)
    return outcomes


class _Exact:
    """The information about a file's cells that the common column types lose: which numbers were integers, and
    cells of other types."""

    def __init__(self) -> None:
        self._whole: List[str] = []
        self._others: List[Tuple[int, str, Cell]] = []

    def fit(self, name: str, cells: Sequence[Cell], is_text: bool) -> List[Cell]:
        """Returns the cells of a column. A cell that does not fit the column's type becomes null."""
        given = [cell for cell in cells if cell is not None]
        if not is_text and given and all(isinstance(cell, int) for cell in given):
            self._whole.append(name)
        fitting: List[Cell] = []
        for at, cell in enumerate(cells):
            fits = (
                cell is None
                or isinstance(cell, str) == is_text
                and (name == "seed" or not isinstance(cell, int) or cell <= 2**53)
            )
            if not fits:
                self._others.append((at, name, cell))
            fitting.append(cell if fits else None)
        return fitting

    def text(self) -> bytes:
        """Returns the text for the file's metadata."""
        return json.dumps([self._whole, self._others]).encode()

    @staticmethod
    def restored(rows: List[Dict[str, Any]], text: Optional[bytes]) -> List[Dict[str, Any]]:
        """Returns the original rows. Files of earlier versions have their own column types and no such
        text."""
        whole, others = ([], []) if text is None else json.loads(text)
        for row in rows:
            row.update((name, int(row[name])) for name in whole if row[name] is not None)
        for at, name, cell in others:
            rows[at][name] = cell
        return rows


class DataSet:
    """A folder of Parquet files with the finished runs of a sweep."""

    def __init__(self, path: Union[str, "os.PathLike[str]"]) -> None:
        try:
            import pyarrow.parquet
        except ImportError as error:
            raise needs("pyarrow", "arrow") from error
        self._arrow, self._parquet = pyarrow, pyarrow.parquet
        # The number of the next file, once one has been written. Listing the folder for each file would be slow.
        self._number: Optional[int] = None
        self.path = pathlib.Path(path)
        if self.path.exists() and not self.path.is_dir():
            raise RequestError(f"out={self.path} is not a folder; accepted: a folder that exists or can be created")
        others = (
            sorted(p.name for p in self.path.glob("*") if not p.name.startswith((".fulgurite-", "part-")))
            if self.path.is_dir()
            else []
        )
        if others:
            raise RequestError(
                f"out={self.path} contains {others[0]}, which is not from a sweep; accepted: an empty folder, "
                "or the folder of a sweep"
            )
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RequestError(
                f"out={self.path} cannot be written: {error}; accepted: a folder that exists or can be created"
            ) from error

    def files(self) -> List[pathlib.Path]:
        """Returns the files, in the order in which they were written."""
        return sorted(self.path.glob("part-*.parquet"))

    def known(self) -> Set[str]:
        """Returns the keys of the runs that succeeded."""
        keys: Set[str] = set()
        for file in self.files():
            table = self._read(file, ["key", "error_class"])
            pairs = zip(table.column("key").to_pylist(), table.column("error_class").to_pylist())
            keys.update(key for key, failed in pairs if failed is None)
        return keys

    def _read(self, file: pathlib.Path, columns: Sequence[str] = _OWN, whole: bool = False) -> Any:
        """Reads the whole table of a file, or only these columns."""
        try:
            table = self._parquet.ParquetFile(file).read(None if whole else list(columns))
        except (self._arrow.ArrowException, OSError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise RequestError(
                f"out={self.path}: {file.name} cannot be read: {reason}; accepted: delete the file, and its "
                "runs are executed again"
            ) from error
        missing = [name for name in columns if name not in table.column_names]
        if missing:
            raise RequestError(
                f"out={self.path}: {file.name} has no column {missing[0]}, so it is not from a sweep; accepted: "
                "an empty folder, or the folder of a sweep"
            )
        return table

    def _types(self) -> Dict[str, Any]:
        """Returns the type of each column. It is the same in all files, because readers take the types of a
        folder from one file.

        A column may contain integers in one run and reals in another, so numbers are reals. Only seeds are always
        integers and may be too large for a real.
        """
        text, real, whole = self._arrow.string(), self._arrow.float64(), self._arrow.uint64()
        figures = {name: text if is_text else whole if name == "seed" else real for name, is_text in _native.schema()}
        return {**dict.fromkeys(_OWN, text), **figures}

    def write(self, batch: Sequence[Task], outcomes: Sequence[Outcome]) -> None:
        """Writes the outcomes of a batch to a new file, which appears complete or not at all."""
        own: List[Dict[str, Optional[str]]] = []
        rows: List[Dict[str, Cell]] = []
        for task, (of_run, kind, sentence) in zip(batch, outcomes):
            # A failed run has one row without figures.
            for row in of_run if kind is None else [{}]:
                rows.append(row)
                own.append(dict(zip(_OWN, (task.key, _native.VERSION, task.input_hash or None, kind, sentence))))
        types, exact = self._types(), _Exact()
        figures = {name: [row.get(name) for row in rows] for name in types if name not in _OWN}
        columns: Dict[str, Sequence[Cell]] = {name: [row[name] for row in own] for name in _OWN}
        columns.update(
            (name, exact.fit(name, cells, types[name] == self._arrow.string())) for name, cells in figures.items()
        )
        arrays = [self._arrow.array(columns[name], type=kind) for name, kind in types.items()]
        schema = self._arrow.schema(list(types.items()), metadata={_EXACT: exact.text()})
        table = self._arrow.Table.from_arrays(arrays, schema=schema)
        number = len(self.files()) if self._number is None else self._number
        name = f"part-{number:06d}-{batch[0].key[:12]}.parquet"
        packed = self._arrow.BufferOutputStream()
        self._parquet.write_table(table, packed)
        _native.write_file(os.fspath(self.path / name), packed.getvalue().to_pybytes())
        self._number = number + 1

    def outcomes(self, wanted: Set[str]) -> Dict[str, Outcome]:
        """Returns the outcomes of the runs with these keys. If a run has several, the last one written is
        used."""
        found: Dict[str, Outcome] = {}
        for file in self.files():
            of_file: Dict[str, Outcome] = {}
            table = self._read(file, whole=True)
            for row in _Exact.restored(table.to_pylist(), (table.schema.metadata or {}).get(_EXACT)):
                own = {name: row.pop(name) for name in _OWN}
                if own["key"] not in wanted:
                    continue
                if own["error_class"] is not None:
                    of_file[own["key"]] = ([], own["error_class"], own["error"])
                    continue
                rows = of_file.setdefault(own["key"], ([], None, None))[0]
                rows.append({name: cell for name, cell in row.items() if cell is not None})
            found.update(of_file)
        return found


def sweep(
    runs: Sequence[Run],
    *,
    client: "Optional[distributed.Client]" = None,
    out: Union[str, "os.PathLike[str]", None] = None,
    batch: Optional[int] = None,
    threads: Optional[int] = None,
    on_error: str = "raise",
    progress: Watch = True,
    axes: Sequence[str] = (),
) -> Result:
    """Executes runs in batches; :func:`fulgurite.sweep` describes the parameters."""
    if batch is not None and batch < 1:
        raise RequestError(f"batch={batch} runs nothing; accepted: a number from 1 on")
    if client is not None and not hasattr(client, "submit"):
        raise RequestError(f"client={client!r} is a {type(client).__name__}; accepted: a distributed.Client")
    if client is not None and threads is not None:
        raise RequestError("threads and client exclude each other; accepted: one of them")
    # Check the runs before anything is created.
    if on_error == "raise":
        _native.check([run.native() for run in runs])
    tasks = [task_of(at, run) for at, run in enumerate(runs)]
    folder = None if out is None else DataSet(out)
    known = folder.known() if folder is not None else set()
    # A run that occurs twice is executed once.
    first = {task.key: task for task in reversed(tasks)}
    left = [task for task in tasks if task.key not in known and first[task.key] is task]
    kept: Dict[str, Outcome] = {}

    def finish(ended: Sequence[Task], outcomes: Sequence[Outcome]) -> None:
        if folder is not None:
            folder.write(ended, outcomes)
        else:
            kept.update(zip((task.key for task in ended), outcomes))
        for task, (_, kind, sentence) in zip(ended, outcomes):
            if kind is not None and on_error == "raise":
                raise getattr(errors, kind)(
                    f"{sentence}" if folder is None else f"{sentence}; finished runs are kept in {folder.path}"
                )

    size = batch if batch is not None else BATCH
    with Watching(progress) as watching:
        if client is None:
            _locally(left, size, threads, watching, finish)
        else:
            _on_cluster(left, size, client, watching, finish)
    if folder is not None:
        kept = folder.outcomes({task.key for task in tasks})
    return _gathered(runs, tasks, kept, axes)


def _locally(
    tasks: List[Task],
    size: int,
    threads: Optional[int],
    watching: Watching,
    finish: Callable[[Sequence[Task], Sequence[Outcome]], None],
) -> None:
    done = 0
    for batch in batches(tasks, size):
        before = done

        def tell(*now: Any) -> None:
            if watching.listener is not None:
                # The numbers of requests are those of the batch, the numbers of runs those of the sweep.
                watching.listener(now[0], now[1], before + now[2], len(tasks), now[4])

        finish(batch, execute(batch, threads, tell))
        done += len(batch)


def _on_cluster(
    tasks: List[Task],
    size: int,
    client: "distributed.Client",
    watching: Watching,
    finish: Callable[[Sequence[Task], Sequence[Outcome]], None],
) -> None:
    try:
        import dask
        import distributed
    except ImportError as error:
        raise needs("dask", "cluster") from error
    waiting = batches(tasks, size)
    under_way: Dict[Any, List[Task]] = {}
    # Runs that were lost while alone in their batch. Dask blames all tasks that a lost worker had been given, so
    # another run may be the cause.
    suspects: List[Task] = []
    accused: Any = None
    done = 0

    def submit(batch: List[Task], attempt: str = "") -> Any:
        # The key must be unique, because Dask treats tasks with equal keys as the same task.
        future = client.submit(execute, list(batch), key=f"fulgurite-{batch[0].key}-{len(batch)}{attempt}", pure=True)
        under_way[future] = list(batch)
        return future

    # Only some batches are submitted in advance, so that memory does not grow with the length of the sweep.
    threads: Any = client.nthreads()
    ahead = max(4, 3 * sum(threads.values()))
    # This timeout is how long a local cluster waits for the replacement of a lost worker before it gives the
    # worker up. If a run ends one worker after the other, a replacement may just be starting, and finally no
    # worker would be left.
    with dask.config.set({"distributed.deploy.lost-worker-timeout": "365 days"}):
        try:
            ending = distributed.as_completed([submit(batch) for _, batch in zip(range(ahead), waiting)])
            for future in ending:
                batch = under_way.pop(future)
                outcomes: Optional[List[Outcome]] = None
                if future.status == "finished":
                    outcomes = future.result()
                elif len(batch) > 1:
                    # One of these runs ended its workers. Submitting each run alone limits the damage.
                    for task in batch:
                        ending.add(submit([task]))
                    continue
                elif future is accused:
                    lost = future.exception()
                    outcomes = [([], "RunError", f"the run ended its worker: {type(lost).__name__}: {lost}")]
                else:
                    suspects.extend(batch)
                if outcomes is not None:
                    finish(batch, outcomes)
                    done += len(batch)
                    if watching.listener is not None:
                        watching.listener(
                            0, 0, done, len(tasks), (f"{done} of {len(tasks)} runs on the cluster", done, len(tasks))
                        )
                following = next(waiting, None)
                if following is not None:
                    ending.add(submit(following))
                elif suspects and not under_way:
                    # Execute a suspect while no other run is executed. If its worker is lost, the suspect is
                    # the cause.
                    accused = submit([suspects.pop()], "-alone")
                    ending.add(accused)
        finally:
            client.cancel(list(under_way))


def _gathered(runs: Sequence[Run], tasks: Sequence[Task], found: Dict[str, Outcome], axes: Sequence[str]) -> Result:
    """Returns the outcomes as a result, in the order of the runs."""
    rows: List[Dict[str, Cell]] = []
    of_run: List[int] = []
    failures: List[Failure] = []
    for task in tasks:
        of_this, kind, sentence = found.get(task.key, ([], "RunError", "the run has no outcome"))
        if kind is not None:
            failures.append(Failure(runs[task.at], getattr(errors, kind, RunError)(sentence)))
        rows.extend(of_this)
        of_run.extend([task.at] * len(of_this))
    commands = {run.command for run in runs}
    command = commands.pop() if len(commands) == 1 else None
    return Result(_native.Table.from_rows(rows), command, axes, runs, of_run, failures)


explain(globals())

__all__ = ["BATCH", "DataSet"]
