"""Represents the result of runs as a table."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any, Dict, Iterator, List, NamedTuple, Optional, Sequence, Union, overload

from . import _native
from .errors import MissingPackageError, RequestError
from .fields import explain

if TYPE_CHECKING:
    import altair
    import pandas
    import polars
    import pyarrow

    from .description import Run

#: A cell: a name, a count, or a real number; None for a row without a value.
Cell = Union[str, int, float, None]


class Column(NamedTuple):
    """A column that results can have."""

    #: The name of the column, which ends with the unit.
    name: str
    #: The unit of the values: ``ns``, ``bytes``, ``bytes/s``, or empty for names and pure numbers.
    unit: str
    #: The meaning of the column.
    meaning: str
    #: Whether the column is an axis, which identifies runs.
    is_axis: bool
    #: Whether higher values are better; None if neither higher nor lower ones are.
    more_is_better: Optional[bool]


_COLUMNS: Dict[str, Column] = {described[0]: Column(*described) for described in _native.columns()}


def columns() -> List[Column]:
    """Returns all columns that a result can have, in order, with units and meanings."""
    return list(_COLUMNS.values())


class Failure(NamedTuple):
    """A failed run in a sweep that continued."""

    #: The run that failed.
    run: Run
    #: The error that :func:`fulgurite.run` would have raised.
    error: Exception


def needs(package: str, extra: str) -> MissingPackageError:
    """Returns the error for a package that is not installed."""
    return MissingPackageError(f"{package} is not installed; accepted: pip install 'fulgurite[{extra}]'")


class Result:
    """A table of flat rows, in the order of the runs.

    Arrow consumers can read it as a table without a copy, through Arrow's PyCapsule interface:
    ``pyarrow.table(result)``, ``polars.DataFrame(result)``, DuckDB and others. The metadata of each field
    contains the unit and the meaning of the column. Columns and units are those of the command (``fulgurite
    reference``); :func:`fulgurite.columns` lists them.
    """

    def __init__(
        self,
        table: _native.Table,
        command: Optional[str] = None,
        axes: Sequence[str] = (),
        runs: Sequence[Run] = (),
        of_run: Sequence[int] = (),
        failures: Sequence[Failure] = (),
    ) -> None:
        self._table = table
        self._axes = list(axes)
        self._runs = list(runs)
        self._of_run = list(of_run)
        #: The command of the rows; None if there are several.
        self.command = command
        #: The failed runs, in a sweep that continues after a failure.
        self.failures: List[Failure] = list(failures)

    def __len__(self) -> int:
        return len(self._table)

    def __iter__(self) -> Iterator[Dict[str, Cell]]:
        return (self._table.row(at) for at in range(len(self)))

    @overload
    def __getitem__(self, key: int) -> Dict[str, Cell]: ...

    @overload
    def __getitem__(self, key: str) -> List[Cell]: ...

    def __getitem__(self, key: Union[int, str]) -> Union[Dict[str, Cell], List[Cell]]:
        """Returns a row by number, as a dictionary, or a column by name, as a list."""
        if isinstance(key, str):
            if key not in self.columns:
                # This raises an error with the nearest known name. If the name is known, no row has a value.
                self._table.column(key)
                raise RequestError(f"no row has a value in the column {key}; accepted: {', '.join(self.columns)}")
            return self._table.column(key)
        at = key + len(self) if key < 0 else key
        if not 0 <= at < len(self):
            raise IndexError(f"row {key} of {len(self)}")
        return self._table.row(at)

    @property
    def columns(self) -> List[str]:
        """The names of the columns in which any row has a value, in order."""
        return self._table.columns()

    @property
    def rows(self) -> List[Dict[str, Cell]]:
        """The rows as dictionaries, without columns that have no value."""
        return list(self)

    def run_of(self, row: int) -> Run:
        """Returns the run of a row.

        :raises RequestError: if the result is from a file or a study.
        """
        if not self._runs:
            raise RequestError("this result does not contain its runs; accepted: a result of run or sweep")
        return self._runs[self._of_run[row]]

    @property
    def runs(self) -> List[Run]:
        """The runs of the result; empty for a result of a study or a list."""
        return list(self._runs)

    @property
    def finding(self) -> Optional[str]:
        """The finding in one sentence; None if there is nothing to compare."""
        return None if self.command is None or not len(self) else self._table.finding(self.command)

    # Arrow.

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Returns the table as a stream of Arrow's C data interface. The memory is shared, not copied."""
        del requested_schema  # The interface allows leaving casts to the consumer.
        return self._table.stream()

    def to_arrow(self) -> pyarrow.Table:
        """Returns the table as :class:`pyarrow.Table`, without a copy."""
        try:
            import pyarrow
        except ImportError as error:
            raise needs("pyarrow", "arrow") from error
        return pyarrow.table(self)

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the table as :class:`pandas.DataFrame`. A missing cell is NA, so columns of integers stay
        integers."""
        try:
            import pandas
        except ImportError as error:
            raise needs("pandas", "pandas") from error
        series = {}
        for name in self.columns:
            cells = self._table.column(name)
            kinds = {type(cell) for cell in cells if cell is not None}
            dtype: Any = None
            if kinds == {int}:
                dtype = "UInt64" if None in cells else "uint64"
            elif kinds <= {int, float}:
                dtype = "Float64" if None in cells else "float64"
            series[name] = pandas.Series(cells, dtype=dtype)
        return pandas.DataFrame(series)

    def to_polars(self) -> polars.DataFrame:
        """Returns the table as :class:`polars.DataFrame`."""
        try:
            import polars
        except ImportError as error:
            raise needs("polars", "polars") from error
        return polars.DataFrame(self)

    # Charts, files and text.

    def plot(
        self,
        y: Optional[str] = None,
        *,
        x: Optional[str] = None,
        series: Optional[str] = None,
        panels: Optional[str] = None,
        kind: Optional[str] = None,
        title: Optional[str] = None,
        width: int = 480,
        height: int = 280,
    ) -> "altair.Chart | altair.FacetChart":
        """Returns a chart of the result in the report's style, for notebooks. It needs Altair.

        Rows that do not differ in any of the drawn columns (for example, only in the seed) are repetitions. The
        chart shows their mean, and a rule from the smallest to the largest value.

        :param y: the column to draw; by default the command's main figure.
        :param x: the column of the x axis; by default the first one with more than two different numbers, or else
            the first one in which the rows differ.
        :param series: the column with one colour per value; by default the next one in which the rows differ.
        :param panels: the column with one panel per value.
        :param kind: ``"bar"`` or ``"line"``; by default lines for numbers on the x axis, and bars for names.
        :param title: the title; by default the finding, if ``y`` is not given.
        """
        from .plots import chart

        return chart(self, y, x=x, series=series, panels=panels, kind=kind, title=title, width=width, height=height)

    def to_csv(self, path: Union[str, "os.PathLike[str]", None] = None) -> str:
        """Returns the table as CSV, as with ``--csv``. If ``path`` is given, the CSV is also written
        there."""
        return _written(self._table.csv(), path)

    def to_json(self, path: Union[str, "os.PathLike[str]", None] = None) -> str:
        """Returns the table as one JSON array, as with ``--json``. If ``path`` is given, the JSON is also
        written there."""
        return _written(self._table.json(), path)

    def to_parquet(self, path: Union[str, "os.PathLike[str]"]) -> None:
        """Writes the table to a Parquet file, which appears complete or not at all."""
        _native.write_file(os.fspath(path), self._table.parquet())

    def to_text(self, width: Optional[int] = None) -> str:
        """Returns the table as the command prints it on a terminal of ``width`` characters, with the default
        columns and the finding."""
        if width is None:
            width = shutil.get_terminal_size((100, 24)).columns
        if width < 1:
            raise RequestError(f"width={width} is too narrow for a table; accepted: a number from 1 on")
        return self._table.text(self.command, self._axes, width)

    def without_cost(self) -> Result:
        """Returns the result without the columns about the cost of execution (``sim_wall_s`` and the like),
        which differ between executions. The other columns are equal on every machine."""
        table = self._table.without_cost()
        return Result(table, self.command, self._axes, self._runs, self._of_run, self.failures)

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"<fulgurite.Result of {len(self)} rows, {len(self.columns)} columns{failed}>"

    def _repr_html_(self) -> str:
        """Returns the output in a notebook, which has the default columns of the first rows."""
        shown = self._table.columns_first(self.command) if self.command is not None else self.columns
        most = 40
        head = "".join(f'<th title="{_escaped(_about(name))}">{_escaped(name)}</th>' for name in shown)
        body = "".join(
            "<tr>"
            + "".join(f"<td>{_escaped(_readable(self._table.row(at).get(name)))}</td>" for name in shown)
            + "</tr>"
            for at in range(min(len(self), most))
        )
        finding = f"<p>{_escaped(self.finding)}</p>" if self.finding else ""
        rest = f"<p>{len(self) - most} more rows</p>" if len(self) > most else ""
        failed = f"<p>{len(self.failures)} runs failed; see <code>.failures</code></p>" if self.failures else ""
        return f"{finding}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}{failed}"


def _written(text: str, path: Union[str, "os.PathLike[str]", None]) -> str:
    if path is not None:
        _native.write_file(os.fspath(path), text.encode())
    return text


def _escaped(text: str) -> str:
    for char, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ('"', "&quot;")):
        text = text.replace(char, entity)
    return text


def _about(name: str) -> str:
    column = _COLUMNS[name]
    return f"{column.meaning} ({column.unit})" if column.unit else column.meaning


def _readable(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, float):
        return f"{cell:,.4g}" if abs(cell) < 10_000 else f"{cell:,.0f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


explain(globals())

__all__ = ["Column", "Failure", "Result", "columns"]
