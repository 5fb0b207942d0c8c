"""Represents traces as arrays. Traces are read from and written to files in all formats, and converted from
and to numpy and Arrow."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, Optional, Union

from . import _native
from .errors import RequestError
from .progress import Watch, Watching
from .result import Result, needs

if TYPE_CHECKING:
    import numpy
    import numpy.typing
    import pyarrow

#: The numbers in the column ``op``.
OPERATIONS = {"read": 0, "write": 1, "trim": 2}


class Trace:
    """The requests of a trace, in order; four columns of equal length.

    ======== ====== ==========================================================
    column   type   meaning
    ======== ====== ==========================================================
    at_ns    uint64 arrival in nanoseconds after the first request; 0 if the format has no times
    op       uint8  0 read, 1 write, 2 trim
    start    uint64 first byte or page, see :attr:`unit`
    length   uint64 number of bytes or pages
    ======== ====== ==========================================================

    Arrow consumers can read a trace as a table without a copy: ``pyarrow.table(trace)``, ``polars.DataFrame(trace)``.
    """

    def __init__(self, native: _native.Trace) -> None:
        self._trace = native

    @classmethod
    def read(
        cls, path: Union[str, "os.PathLike[str]"], format: Optional[str] = None, *, progress: Watch = True
    ) -> Trace:
        """Reads a trace file, which may be compressed with gzip, zstd, xz or lz4.

        :param format: the format of the file with options (``"disksim:time_unit=ns"``), if the name and the
            content of the file do not tell.
        """
        with Watching(progress) as watching:
            return cls(_native.Trace.read(os.fspath(path), format, watching.listener))

    @classmethod
    def from_numpy(
        cls,
        *,
        start: numpy.typing.ArrayLike,
        op: numpy.typing.ArrayLike,
        length: numpy.typing.ArrayLike = 1,
        at_ns: numpy.typing.ArrayLike = 0,
        unit: str = "bytes",
    ) -> Trace:
        """Creates a trace from arrays. A single number applies to all requests.

        :param start: the first byte or page of each request.
        :param op: 0 read, 1 write, 2 trim.
        :param length: the number of bytes or pages of each request.
        :param at_ns: the arrival of each request in nanoseconds; must not decrease.
        :param unit: the unit of ``start`` and ``length``: ``"bytes"`` or ``"pages"``.
        """
        if unit not in ("bytes", "pages"):
            raise RequestError(f"unit={unit!r} is unknown; accepted: 'bytes', 'pages'")
        numpy = _numpy()
        count = numpy.size(start)
        given = {"at_ns": at_ns, "op": op, "start": start, "length": length}
        arrays = {name: _whole(name, values, count) for name, values in given.items()}
        return cls(
            _native.Trace.from_columns(
                arrays["at_ns"].tobytes(),
                arrays["op"].astype(numpy.uint8).tobytes(),
                arrays["start"].tobytes(),
                arrays["length"].tobytes(),
                unit == "pages",
            )
        )

    @classmethod
    def from_arrow(cls, table: Any, *, unit: str = "bytes") -> Trace:
        """Creates a trace from an Arrow table, or from an object that can be exported as one (a polars or
        pandas frame).

        The table must have the columns ``op`` and ``start``. The columns ``length`` and ``at_ns`` may be left
        out; they are then 1 and 0.
        """
        try:
            import pyarrow
        except ImportError as error:
            raise needs("pyarrow", "arrow") from error
        table = pyarrow.table(table)
        names = table.column_names
        missing = [name for name in ("start", "op") if name not in names]
        if missing:
            raise RequestError(f"the table has no column {missing[0]}; accepted: at_ns, op, start, length")
        given: Dict[str, Any] = {
            name: table.column(name).to_numpy() for name in ("at_ns", "op", "start", "length") if name in names
        }
        return cls.from_numpy(unit=unit, **given)

    def to_numpy(self) -> Dict[str, numpy.typing.NDArray[numpy.unsignedinteger[Any]]]:
        """Returns the columns as read-only numpy arrays."""
        numpy = _numpy()
        kinds = {"at_ns": numpy.uint64, "op": numpy.uint8, "start": numpy.uint64, "length": numpy.uint64}
        return {name: numpy.frombuffer(self._trace.column(name), dtype=kind) for name, kind in kinds.items()}

    def to_arrow(self) -> pyarrow.Table:
        """Returns the trace as :class:`pyarrow.Table`, without a copy."""
        try:
            import pyarrow
        except ImportError as error:
            raise needs("pyarrow", "arrow") from error
        return pyarrow.table(self)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Returns the trace as a stream of Arrow's C data interface. The memory is shared, not copied."""
        del requested_schema
        return self._trace.stream()

    def save(
        self, path: Union[str, "os.PathLike[str]"], format: str, *, page: int = 4096, force: bool = False
    ) -> Result:
        """Writes the trace to a file for any command and :class:`fulgurite.Requests`. The file appears complete
        or not at all. A name that ends in ``.gz`` or ``.zst`` compresses it.

        :param format: the name of a format; ``fulgurite.names("formats")`` lists them.
        :param page: page size in bytes, if pages are converted to bytes or bytes to pages.
        :param force: whether to replace an existing file; otherwise only an empty file is replaced.
        :returns: one row with the numbers of requests that were written and left out, and the properties of
            the written ones that the format loses.
        """
        return Result(self._trace.save(os.fspath(path), format, page, force))

    @property
    def unit(self) -> str:
        """The unit of ``start`` and ``length``: ``bytes`` or ``pages``."""
        return self._trace.unit

    def __len__(self) -> int:
        return len(self._trace)

    def __repr__(self) -> str:
        return f"<fulgurite.Trace of {len(self):,} requests, in {self.unit}>"


def summary(
    path: Union[str, "os.PathLike[str]"],
    format: Optional[str] = None,
    page: Union[int, str, None] = None,
    *,
    progress: Watch = True,
) -> Result:
    """Describes a trace file in one row, as ``fulgurite trace info`` does: sizes, footprint, rates, locality.

    :param page: page size in bytes for counting footprints.
    """
    with Watching(progress) as watching:
        page = f"{page}B" if isinstance(page, int) else page
        return Result(_native.trace_summary(os.fspath(path), format, page, watching.listener))


def _numpy() -> Any:
    try:
        import numpy
    except ImportError as error:
        raise needs("numpy", "numpy") from error
    return numpy


def _whole(name: str, values: Any, count: int) -> Any:
    """Returns the values as an array of unsigned 64-bit numbers."""
    numpy = _numpy()
    array = numpy.asarray(values)
    if array.ndim == 0:
        array = numpy.full(count, array)
    if array.ndim != 1:
        raise RequestError(f"{name} has {array.ndim} dimensions; accepted: 1")
    if array.dtype.kind == "f" and array.size and not (numpy.isfinite(array).all() and array.max() < 2.0**64):
        wrong = array[~(numpy.isfinite(array) & (array < 2.0**64))][0]
        raise RequestError(f"{name} has the value {wrong}; accepted: whole numbers from 0 to 2^64 - 1")
    if array.dtype.kind not in "ui" and not (array.dtype.kind == "f" and (array == numpy.floor(array)).all()):
        raise RequestError(f"{name} has values of type {array.dtype}; accepted: whole numbers")
    if array.size and array.dtype.kind in "if" and array.min() < 0:
        raise RequestError(f"{name} has the value {array.min()}; accepted: numbers from 0 on")
    if name == "op" and array.size and array.max() > 2:
        raise RequestError(f"op {array.max()} is not an operation; accepted: 0 read, 1 write, 2 trim")
    return numpy.ascontiguousarray(array, dtype=numpy.uint64)


__all__ = ["OPERATIONS", "Trace", "summary"]
