"""Describes a run as a value: the stack, the load, the measurements, and the seed.

The classes have the same structure as in Rust::

    Run(
        stack=Stack(device="p4510", pool=Pool(replacement="lru", write_back="ace")),
        load=Requests("mixed-skewed", ops=50_000),
        measure=Measure(),
        seed=42,
    )

Values are the same as on the command line: a text such as ``"6%"``, ``"4KiB"``, ``"zipf:theta=0.99"``, or a plain
number. ``None`` means the default. :func:`settings` lists the defaults and the meanings. Objects are immutable;
use ``dataclasses.replace`` to change one.

There are two other forms of a run: the command with its settings (:meth:`Run.settings`), and a study in TOML
(:meth:`Run.to_toml`), which ``fulgurite study FILE.toml`` runs. All forms of a run have the same run id.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
from dataclasses import dataclass, field
from typing import Any, Dict, Iterable, Iterator, List, Mapping, NamedTuple, Optional, Sequence, Type, Union

from . import _native, policies
from .errors import RequestError
from .fields import explain

#: A value of a setting: text as on the command line, a number, a flag, or a path.
Value = Union[str, int, float, bool, "os.PathLike[str]"]
#: A count, such as ``50_000`` or ``"50K"``.
Count = Union[int, str]
#: A count, or a share such as ``"6%"``.
Portion = Union[int, str]
#: A size in bytes, such as ``4096`` or ``"4KiB"``.
Size = Union[int, str]
#: A number of microseconds, such as ``2`` or ``1.5``.
Micros = Union[int, float, str]


@dataclass(frozen=True)
class Pool:
    """A buffer pool."""

    #: The replacement policy: a name with options, or a class that derives from :class:`fulgurite.Replacement`.
    replacement: Union[str, Type[policies.Replacement], None] = None
    #: The write-back policy: ``single``, ``ace:n_w=8``, …
    write_back: Optional[str] = None
    #: The prefetch policy.
    prefetch: Optional[str] = None
    #: The size of the pool: a number of frames, or a share of the pages.
    frames: Optional[Portion] = None
    #: Page size in bytes.
    page: Optional[Size] = None
    #: CPU time per request in microseconds, on the core of its user.
    cpu_per_request: Optional[Micros] = None
    #: The number of simulated cores over which users are spread. All cores share one pool and one drive.
    cores: Optional[Count] = None


@dataclass(frozen=True)
class Engine:
    """A storage engine, which has a pool of its own."""

    #: The replacement policy.
    replacement: Union[str, Type[policies.Replacement], None] = None
    #: The write-back policy; ``store`` is the engine's own.
    write_back: Optional[str] = None
    #: The prefetch policy.
    prefetch: Optional[str] = None
    #: Page size in bytes.
    page: Optional[Size] = None
    #: The place of page writes: ``in-place``, ``out-of-place``, ``auto``.
    place: Optional[str] = None
    #: The protection against torn writes of pages in place.
    torn_pages: Optional[str] = None
    #: The durability of commits: ``flush``, ``group`` or ``relaxed``.
    durability: Optional[str] = None
    #: Memory in bytes, or as a share of the loaded data such as ``"10%"``.
    memory: Union[int, str, None] = None
    #: Size of the log in bytes.
    log_size: Optional[Size] = None
    #: The largest share of memory for single records, such as ``"50%"``.
    records: Optional[str] = None
    #: CPU time in microseconds per look-up, scanned row, write and commit, on the core of its shard.
    cpu_per_op: Optional[Micros] = None
    #: The number of shards, which divide drive, memory and log equally; ``"auto"`` is one for each core.
    shards: Optional[Count] = None
    #: The number of simulated cores over which the shards are spread.
    cores: Optional[Count] = None
    #: Whether to start with the data that an earlier run left in the file.
    reuse: bool = False


@dataclass(frozen=True)
class Translation:
    """A translation layer without time as the device: page writes are counted but take no time."""

    #: Logical capacity in bytes.
    logical: Optional[Size] = None
    #: Physical capacity in bytes.
    physical: Optional[Size] = None
    #: Segment size in bytes.
    segment: Optional[Size] = None
    #: Page size in bytes.
    page: Optional[Size] = None
    #: The number of free segments below which garbage collection starts.
    gc_reserve: Optional[Count] = None


@dataclass(frozen=True)
class Stack:
    """The stack, from the device up."""

    #: A preset with options (``p4510:channels=4``), a real drive (``file:PATH``), ``mem``, ``none``, or a
    #: :class:`Translation`.
    device: Union[str, Translation, None] = None
    #: A layer above the drive: ``none`` or ``log`` with options.
    layer: Optional[str] = None
    #: A buffer pool.
    pool: Optional[Pool] = None
    #: A storage engine.
    engine: Optional[Engine] = None
    #: The placement policy of the layer, or without a layer of the drive: a name, or a class that derives from
    #: :class:`fulgurite.Placement`.
    placement: Union[str, Type[policies.Placement], None] = None
    #: The victim policy: a name, or a class that derives from :class:`fulgurite.Victim`.
    victim: Union[str, Type[policies.Victim], None] = None
    #: The schedule of garbage collection.
    schedule: Optional[str] = None
    #: Whether to overwrite a file or block device that Fulgurite did not create.
    destroy_contents: bool = False


@dataclass(frozen=True)
class Load:
    """The load on a stack: :class:`Requests`, :class:`Benchmark` or :class:`Characterisation`."""


@dataclass(frozen=True)
class Requests(Load):
    """The requests of a workload."""

    #: A workload with options, or the path of a trace file.
    workload: Union[str, "os.PathLike[str]"]
    #: The number of requests.
    ops: Optional[Count] = None
    #: The number of pages that a generated workload accesses, if there is a pool.
    pages: Optional[Count] = None
    #: The number of users of a closed loop, each with one request at a time.
    users: Optional[Count] = None
    #: The factor by which an open loop accelerates the workload's arrival times (``2``, ``"2x"``).
    speed: Union[int, float, str, None] = None
    #: The number of requests per second of an open loop.
    rate: Optional[Count] = None
    #: The number of requests to skip at the beginning.
    skip: Optional[Count] = None
    #: The mapping of the trace's addresses to the drive: ``scale``, ``wrap`` or ``compact``.
    addresses: Optional[str] = None
    #: The format of the trace, if its name and content do not tell.
    format: Optional[str] = None
    #: Whether to sort the requests of the trace by time.
    sort: bool = False
    #: How the files of a list, a folder or a pattern are one trace: ``"time"``, ``"volumes"`` or ``"sequence"``.
    files: Optional[str] = None


@dataclass(frozen=True)
class Benchmark(Load):
    """The transactions of a benchmark."""

    #: A benchmark with options: ``ycsb-a``, ``tpcc:warehouses=4``, …
    benchmark: str
    #: The size of the data as a multiple of the default.
    scale: Optional[Count] = None
    #: The number of rows that an index scan reads concurrently, or ``"auto"``.
    degree: Optional[Count] = None
    #: The number of users, each with one transaction at a time.
    users: Optional[Count] = None
    #: The number of transactions in the measured part.
    ops: Optional[Count] = None
    #: The length of the measured part on the device's clock, such as ``"10s"``, instead of ``ops``.
    time: Optional[str] = None
    #: The warm-up: a number of transactions, or a time.
    warm_up: Union[int, str, None] = None


@dataclass(frozen=True)
class Characterisation(Load):
    """The requests of a suite of measurements, which characterise a drive.

    :class:`fulgurite.Profile` explains the figures of the suite ``concurrency``."""

    #: Request size in bytes.
    page: Optional[Size] = None
    #: The measurements: ``concurrency`` (alpha, k_r, k_w), ``latency``, ``overwrite``, ``zones`` or
    #: ``over-provisioning``.
    suite: Optional[str] = None
    #: The offered requests per second with ``suite="latency"``.
    rates: Optional[Count] = None
    #: The measured time of a rate on the device's clock, such as ``"4s"``, with ``suite="latency"``.
    time: Optional[str] = None
    #: The pattern of writes with the other suites: ``uniform``, ``zones:95/5``, ``used:80%``, …
    patterns: Optional[str] = None


@dataclass(frozen=True)
class Measure:
    """The kinds of rows that a run returns."""

    #: The interval per row: a time (``"100ms"``), or page writes (``10_000``, ``"25%"``) for a
    #: :class:`Translation`.
    interval: Union[int, str, None] = None
    #: Whether to add the measurements and decisions of the placement policy.
    explain: bool = False
    #: Whether to return a row per group of segments.
    groups: bool = False
    #: Whether to return a row per type of transaction.
    by_type: bool = False
    #: Whether to return a row per number of users that a characterisation measures, or per size of a pool.
    curve: bool = False
    #: The share of the pages for a curve over sizes of a pool: ``"1/16"``, or ``"1"`` for all pages.
    sample: Optional[str] = None
    #: Whether to repeat the workload until write amplification and p99 are steady. The row is about the last
    #: round.
    until_steady: bool = False
    #: The output file for the drive's timeline, for Perfetto.
    trace_out: Union[str, "os.PathLike[str]", None] = None
    #: The output file for one CSV line per request.
    requests_out: Union[str, "os.PathLike[str]", None] = None
    #: Whether these two files may replace any existing file. Otherwise they replace only their own earlier
    #: versions.
    force: bool = False


@dataclass(frozen=True)
class Run:
    """A run."""

    #: The stack.
    stack: Stack
    #: The load.
    load: Load
    #: The kinds of rows.
    measure: Measure = field(default_factory=Measure)
    #: The seed of all randomness.
    seed: Count = 42

    @property
    def command(self) -> str:
        """The command of the run: ``pool``, ``gc``, ``replay``, ``bench`` or ``profile``."""
        if isinstance(self.load, Characterisation):
            return "profile"
        if isinstance(self.load, Benchmark):
            return "bench"
        if self.stack.pool is not None:
            return "pool"
        return "gc" if isinstance(self.stack.device, Translation) else "replay"

    def settings(self) -> Dict[str, Union[str, type]]:
        """The settings that differ from their defaults, as text. A policy of your own is given as its class.

        >>> Run(Stack(pool=Pool(write_back="ace")), Requests("zipf", ops=50_000)).settings()
        {'workload': 'zipf', 'write_back': 'ace', 'ops': '50000', 'seed': '42'}
        """
        stack, command = self.stack, self.command
        # The device is not one of the parts. It is either a setting or a part of its own.
        parts: List[Any] = [self.load, self.measure, dataclasses.replace(stack, device=None, pool=None, engine=None)]
        for part, owner, what in (
            (stack.pool, "pool", "a pool"),
            (stack.engine, "bench", "an engine"),
            (stack.device if isinstance(stack.device, Translation) else None, "gc", "a translation layer without time"),
        ):
            if part is not None and command != owner:
                raise RequestError(f"a stack with {what} does not go with {command}; accepted: {_STACKS[command]}")
            if part is not None:
                parts.append(part)
        given: Dict[str, Any] = {
            known.name: getattr(part, known.name) for part in parts for known in dataclasses.fields(part)
        }
        given.update(seed=self.seed, device=None if isinstance(stack.device, Translation) else stack.device)
        given = {name: value for name, value in given.items() if value is not None and value is not False}
        known = [setting.name for setting in _settings_of(command)]
        for name in given:
            if name not in known:
                raise RequestError(f"{name} does not go with {command}; accepted: {', '.join(known)}")
        return {
            name: given[name] if policies.is_policy(given[name]) else _text(name, given[name])
            for name in known
            if name in given
        }

    @classmethod
    def from_settings(cls, command: str, settings: Mapping[str, "Value | type"]) -> Run:
        """The run of a command with these settings and defaults for the others."""
        known = {setting.name for setting in _settings_of(command)}
        given: Dict[str, Any] = {}
        for name, value in settings.items():
            if name not in known:
                # This raises an error with the nearest known name.
                _native.check([(command, {name: ""}, [])])
            given[name] = value if policies.is_policy(value) else _text(name, value)  # type: ignore[arg-type]
        flags = {name for name, value in given.items() if _is_flag(command, name)}
        for name in flags:
            given[name] = _yes(name, given[name])

        def take(kind: type) -> Dict[str, Any]:
            names = [known.name for known in dataclasses.fields(kind)]
            return {name: given.pop(name) for name in names if name in given}

        seed = given.pop("seed", "42")
        measure = Measure(**take(Measure))
        load: Load
        pool = engine = None
        if command == "profile":
            load = Characterisation(**take(Characterisation))
        elif command == "bench":
            if "benchmark" not in given:
                raise RequestError("benchmark is missing")
            load = Benchmark(**take(Benchmark))
            engine = Engine(**take(Engine))
        else:
            if "workload" not in given:
                raise RequestError("workload is missing")
            load = Requests(**take(Requests))
        if command == "pool":
            pool = Pool(**take(Pool))
        device: Union[str, Translation, None] = given.pop("device", None)
        if command == "gc":
            device = Translation(**take(Translation))
        stack = Stack(device=device, pool=pool, engine=engine, **take(Stack))
        assert not given, f"settings without a place: {', '.join(given)}"
        return cls(stack, load, measure, seed)

    def to_toml(self, title: Optional[str] = None) -> str:
        """Returns the run as a study in TOML, which ``fulgurite study FILE.toml`` runs."""
        settings = self.settings()
        own = [name for name, value in settings.items() if not isinstance(value, str)]
        if own:
            raise RequestError(
                f"--{own[0]} is a class in Python, which TOML cannot represent; accepted: a policy by name"
            )
        lines = [
            f"title = {_toml(title or f'A run of {self.command}')}",
            'question = "What does this run give?"',
            f"command = {_toml(self.command)}",
            "",
            "[grid]",
        ]
        lines += [f"{name} = {_toml(str(value))}" for name, value in settings.items()]
        return "\n".join(lines) + "\n"

    @classmethod
    def from_toml(cls, text: str) -> Run:
        """Returns the run of a study with exactly one run."""
        grids = _native.Study.read("run", text).grids(False, None)
        runs = [cell for _, command, settings in grids for cell in _cells(command, settings)]
        if len(runs) != 1:
            raise RequestError(f"the study has {len(runs)} runs; accepted: one, or fulgurite.Study for all of them")
        return runs[0]

    def canonical(self) -> str:
        """Returns the canonical text of the run, which has all settings that affect its result, with their
        values.

        This reads the trace, and characterises the drive if a policy depends on the drive.
        """
        return _native.identity(self.native())[1]

    @property
    def id(self) -> str:
        """The run id, as in the column ``run_id``: a hash of :meth:`canonical` and of the version."""
        return _native.identity(self.native())[0]

    def check(self) -> None:
        """Raises :class:`fulgurite.RequestError` if the run is invalid. Nothing is measured or executed."""
        _native.check([self.native()])

    def native(self, named: Optional[Mapping[str, str]] = None) -> "_native.Asked":
        """Returns the run in the format of the native module. ``named`` are the texts of its policies in run
        ids, if another process computed them. This method is not part of the public interface."""
        texts: Dict[str, str] = {}
        makers: List[_native.Maker] = []
        for name, value in self.settings().items():
            if isinstance(value, str):
                texts[name] = value
            elif name in policies.KINDS:
                # The policy's default is used until the run is built.
                makers.append(policies.maker_of(name, value, (named or {}).get(name)))
            else:
                raise RequestError(f"--{name.replace('_', '-')} takes no class; accepted: a name")
        return self.command, texts, makers


#: The stack that each command requires.
_STACKS = {
    "pool": "a stack with a pool",
    "gc": "a stack with a Translation as its device",
    "replay": "a device, with a layer or without",
    "bench": "a device with an engine",
    "profile": "a device alone",
}


class Setting(NamedTuple):
    """A setting of a command, as on the command line and in study files."""

    #: The name of the setting.
    name: str
    #: The syntax of a value; empty for a flag.
    written: str
    #: The meaning of the setting.
    about: str
    #: The default of the setting; None if it is required or has no default.
    default: Optional[str]


_SETTINGS: Dict[str, List[Setting]] = {
    command: [Setting(*described) for described in described_of] for command, described_of in _native.settings().items()
}


#: The unit that is appended to plain numbers, for settings whose values have one.
_UNITS: Dict[str, str] = {
    setting.name: "B" if setting.written.startswith("SIZE") else "x"
    for settings_of in _SETTINGS.values()
    for setting in settings_of
    if setting.written.startswith("SIZE") or setting.written == "2x"
}


def _settings_of(command: str) -> List[Setting]:
    if command not in _SETTINGS:
        raise RequestError(f"unknown command `{command}`; accepted: {', '.join(_SETTINGS)}")
    return _SETTINGS[command]


def settings(command: str) -> List[Setting]:
    """Returns the settings of a command: ``pool``, ``gc``, ``replay``, ``bench`` or ``profile``.

    The settings are in the order of the axes of a grid, of which the last varies fastest.
    """
    return list(_settings_of(command))


def _is_flag(command: str, name: str) -> bool:
    return any(known.name == name and not known.written for known in _settings_of(command))


def _yes(name: str, text: str) -> bool:
    if text in ("yes", "true", "on"):
        return True
    if text in ("no", "false", "off"):
        return False
    raise RequestError(f"--{name.replace('_', '-')}: {text} is neither yes nor no")


def _text(name: str, value: Value) -> str:
    """Returns a value in the syntax of the command line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if isinstance(value, int):
        # Append the unit, because a number of bytes and a factor are written with a unit.
        return f"{value}{_UNITS.get(name, '')}"
    if isinstance(value, float):
        if not (value == value and abs(value) != float("inf")):
            raise RequestError(f"--{name.replace('_', '-')}: {value} is not a finite number")
        return _text(name, int(value)) if value.is_integer() else f"{value!r}{_UNITS.get(name, '')}"
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if _is_number(value):
        return _text(name, value.item())
    raise RequestError(
        f"--{name.replace('_', '-')}: {value!r} is a {type(value).__name__}; accepted: text, a number, or None "
        "for the default"
    )


def _toml(text: str) -> str:
    escaped = "".join(
        f"\\u{ord(char):04X}" if ord(char) < 32 or ord(char) == 127 else {'"': '\\"', "\\": "\\\\"}.get(char, char)
        for char in text
    )
    return f'"{escaped}"'


#: A value of a setting, several values, or the class of a policy. Several values may be a list, a range, a numpy
#: array, a series of pandas or polars, or any other iterable.
Axis = Union[Value, type, None, Iterable[Any]]


def _is_number(axis: object) -> bool:
    """Whether ``axis`` is a numpy scalar. Arrays and series have the method ``item`` too, but their
    shape is not empty."""
    return hasattr(axis, "item") and getattr(axis, "shape", ()) == ()


def _values(name: str, axis: Axis) -> List[Union[str, type]]:
    """Returns the values of an axis. A text is split as on the command line."""
    if isinstance(axis, str):
        return list(_native.split(axis))
    if policies.is_policy(axis) or isinstance(axis, (bool, int, float, os.PathLike)) or _is_number(axis):
        return [axis if policies.is_policy(axis) else _text(name, axis)]  # type: ignore[arg-type, list-item]
    # Bytes are iterable too, but are not meant as a list of numbers.
    if not hasattr(axis, "__iter__") or isinstance(axis, (bytes, bytearray)):
        raise RequestError(
            f"--{name.replace('_', '-')}: {axis!r} is not a value; accepted: a value, or a list of values"
        )
    values: List[Union[str, type]] = []
    for value in axis:  # type: ignore[union-attr]
        values.extend(_values(name, value))
    if not values:
        raise RequestError(f"--{name.replace('_', '-')} has no value; accepted: a value, or leave it out")
    return values


def _cells(command: str, axes: Mapping[str, Axis]) -> Iterator[Run]:
    """Yields the runs of a grid. The last axis varies fastest."""
    known = [setting.name for setting in _settings_of(command)]
    for name in axes:
        if name not in known:
            _native.check([(command, {name: ""}, [])])
    lists = {name: _values(name, axes[name]) for name in known if name in axes and axes[name] is not None}
    for values in itertools.product(*lists.values()):
        yield Run.from_settings(command, dict(zip(lists, values)))


def grid(command: str, **axes: Axis) -> List[Run]:
    """Returns the runs of a command for all combinations of values.

    A setting has a value, a list of values, or a text that lists them as on the command line
    (``write_back="single,ace:n_w=8"``). The axes are in the order of :func:`settings`; the last varies fastest.

    >>> [run.settings()["write_back"] for run in grid("pool", workload="zipf", write_back="single,ace")]
    ['single', 'ace']
    """
    return list(_cells(command, axes))


explain(globals())

__all__ = [
    "Benchmark",
    "Characterisation",
    "Engine",
    "Load",
    "Measure",
    "Pool",
    "Requests",
    "Run",
    "Setting",
    "Stack",
    "Translation",
    "grid",
    "settings",
]
