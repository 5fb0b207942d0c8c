"""Draws charts of results for notebooks, and reports as one HTML page."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

from . import _native
from .errors import RequestError
from .result import _COLUMNS, Cell, Result, needs

if TYPE_CHECKING:
    import altair

#: The colours of the report. They are distinguishable with colour blindness and have a contrast of at least 3:1
#: to the page.
PALETTE = ["#0072b2", "#c46f00", "#00875f", "#c2406d", "#7a5cc0", "#7d6a00", "#2f8f9e", "#a34a28", "#2a35b5", "#5b7a2e"]
_INK, _QUIET, _LINE = "#1c2024", "#5c6670", "#d9dee3"
_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif'

#: The default column to draw for each command: the first of these that the rows have.
_FIGURES = {
    "pool": ["throughput_ops_s", "misses"],
    "gc": ["waf_steady", "waf"],
    "replay": ["latency_mean_ns"],
    "bench": ["throughput_ops_s"],
    "profile": ["read_iops", "alpha"],
}

#: The scales for each unit, the largest first.
_SCALES: Dict[str, List[Tuple[float, str]]] = {
    "ns": [(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")],
    "bytes": [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")],
    "bytes/s": [(1e9, "GB/s"), (1e6, "MB/s"), (1e3, "kB/s"), (1, "B/s")],
}


def _axes(result: Result) -> List[str]:
    """Returns the axes in which the rows differ, in order."""
    rows = result.rows
    return [
        name
        for name in result.columns
        if _COLUMNS[name].is_axis and any(row.get(name) != rows[0].get(name) for row in rows)
    ]


def _apart(result: Result, names: Sequence[str], axes: Sequence[str]) -> List[str]:
    """Returns the ``axes`` in which rows with equal values in ``names`` differ."""
    groups: Dict[Tuple[Cell, ...], Dict[str, Cell]] = {}
    found: Set[str] = set()
    for row in result:
        first = groups.setdefault(tuple(row.get(name) for name in names), row)
        found.update(name for name in axes if row.get(name) != first.get(name))
    return [name for name in axes if name in found]


def _numbers_apart(result: Result, given: Sequence[str], axes: Sequence[str]) -> List[str]:
    """Returns the ``axes`` along which a line can be drawn. Such an axis has more than two numbers, and they
    do not follow from a name as `n_w` follows from `ace:n_w=4`."""
    names = [*given, *(name for name in axes if not _is_number(result, name))]
    cells = {name: set(result[name]) for name in _apart(result, names, axes)}
    return [name for name, found in cells.items() if len(found) > 2 and None not in found]


def _is_number(result: Result, name: str) -> bool:
    return all(isinstance(cell, (int, float)) for cell in result[name] if cell is not None)


def _scale(name: str, values: Sequence[float]) -> Tuple[float, str]:
    """Returns the divisor for values of a column, and the title of their axis."""
    column = _COLUMNS[name]
    title = name
    for suffix in ("_bytes_s", "_bytes", "_ns"):
        if column.unit and name.endswith(suffix):
            title = name[: -len(suffix)]
            break
    for suffix in ("_ops_s", "_requests_s"):
        if name.endswith(suffix):
            return 1, f"{name[: -len(suffix)]} ({suffix[1:].replace('_', '/')})"
    title = title.replace("_", " ")
    most = max((abs(value) for value in values), default=0.0)
    for factor, unit in _SCALES.get(column.unit, []):
        if most >= factor:
            return factor, f"{title} ({unit})"
    return 1, title


def chart(
    result: Result,
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
    """Returns a chart of a result, for Altair; :meth:`fulgurite.Result.plot` is the same.

    Rows that do not differ in any of the drawn columns (for example, only in the seed) are repetitions. The chart
    shows their mean, and a rule from the smallest to the largest value.

    :param y: the column to draw; by default the command's main figure.
    :param x: the column of the x axis; by default the first one with more than two different numbers, or else the
        first one in which the rows differ.
    :param series: the column with one colour per value; by default the next one in which the rows differ.
    :param panels: the column with one panel per value.
    :param kind: ``"bar"`` or ``"line"``; by default lines for numbers on the x axis, and bars for names.
    """
    try:
        import altair
    except ImportError as error:
        raise needs("altair", "plot") from error
    if not len(result):
        raise RequestError("the result has no rows, so there is nothing to draw")
    if kind not in (None, "bar", "line"):
        raise RequestError(f"kind={kind!r} is unknown; accepted: 'bar', 'line'")
    # Use the finding as the title only for the command's main figure, because it describes this figure.
    finding = result.finding if y is None else None
    if y is None:
        figures = [name for name in _FIGURES.get(result.command or "", []) if name in result.columns]
        if not figures:
            raise RequestError(f"y is missing; accepted: {', '.join(result.columns)}")
        y = figures[0]
    # An unknown column raises an error here, with the nearest known name.
    if not _is_number(result, y):
        raise RequestError(f"y={y} contains names; accepted: a column of numbers")
    given = [name for name in (x, series, panels) if name is not None]
    for name in given:
        result[name]
    # Leave out the seed, because the mean over several seeds is drawn.
    axes = [name for name in _axes(result) if name != "seed"]
    if x is None:
        x = next(
            iter([*_numbers_apart(result, given, axes), *_apart(result, given, axes)]),
            "workload" if "workload" in result.columns else result.columns[0],
        )
        given.append(x)
    if series is None:
        series = next(iter(_apart(result, given, axes)), None)
    names = [name for name in (x, series, panels) if name is not None]
    left_over = _apart(result, names, axes)
    if left_over:
        raise RequestError(
            f"the rows differ in {', '.join(left_over)} too and cannot be drawn together; accepted: "
            f"panels={left_over[0]!r}, or fewer rows"
        )
    if kind is None:
        kind = "line" if _is_number(result, x) and len(set(result[x])) > 2 else "bar"
    groups: Dict[Tuple[Cell, ...], List[float]] = {}
    for row in result:
        value = row.get(y)
        if value is not None:
            groups.setdefault(tuple(row.get(name) for name in names), []).append(float(value))
    factor, y_title = _scale(y, [value for values in groups.values() for value in values])
    x_factor, x_title = 1.0, x.replace("_", " ")
    if kind == "line":
        x_factor, x_title = _scale(x, [float(cell) for cell in result[x] if isinstance(cell, (int, float))])
    data: List[Dict[str, Any]] = []
    for key, values in groups.items():
        at = dict(zip(names, key))
        if kind == "line":
            if not isinstance(at[x], (int, float)):
                raise RequestError(f"x={x} contains names, which a line cannot join; accepted: kind='bar'")
            at[x] = float(at[x]) / x_factor  # type: ignore[arg-type]
        mean = sum(values) / len(values)
        data.append({**at, "mean": mean / factor, "least": min(values) / factor, "greatest": max(values) / factor})

    def encoding(name: str) -> str:
        # No name of a column contains a colon or a dot, which have a special meaning in Altair's shorthand.
        return f"{name}:N"

    zero = altair.Scale(zero=kind == "bar")
    along: Any
    if kind == "line":
        along = altair.X(f"{x}:Q", title=x_title, scale=altair.Scale(zero=False))
    else:
        along = altair.X(encoding(x), title=x_title, sort=None)
    colour = (
        None
        if series is None
        else altair.Color(
            encoding(series), title=series.replace("_", " "), sort=None, scale=altair.Scale(range=PALETTE)
        )
    )
    tips = [altair.Tooltip(encoding(name), title=name) for name in names] + [
        altair.Tooltip("mean:Q", title=y_title, format=",.4g")
    ]
    base = altair.Chart(altair.Data(values=data)).encode(x=along, tooltip=tips)
    main = base.mark_bar(color=PALETTE[0]) if kind == "bar" else base.mark_line(point=True, color=PALETTE[0])
    main = main.encode(y=altair.Y("mean:Q", title=y_title, scale=zero, stack=None))
    rule = base.mark_rule(color=_INK).encode(y=altair.Y("least:Q", scale=zero), y2="greatest:Q")
    if colour is not None:
        main = main.encode(color=colour)
        if kind == "bar":
            beside = altair.XOffset(encoding(series or x), sort=None)
            main, rule = main.encode(xOffset=beside), rule.encode(xOffset=beside)
    layers = [main] + ([rule] if any(len(values) > 1 for values in groups.values()) else [])
    drawn: Any = altair.layer(*layers).properties(width=width, height=height)
    if panels is not None:
        drawn = drawn.facet(facet=altair.Facet(encoding(panels), title=panels.replace("_", " "), sort=None), columns=2)
    text = title if title is not None else (finding or "")
    if text:
        drawn = drawn.properties(title=text)
    styled: altair.Chart = (
        drawn.configure(font=_FONT)
        .configure_view(stroke=None)
        .configure_axis(
            gridColor=_LINE,
            domainColor=_LINE,
            tickColor=_LINE,
            labelColor=_QUIET,
            titleColor=_INK,
            titleFontWeight=400,
            labelLimit=240,
        )
        .configure_axisX(grid=False, labelAngle=0 if kind == "line" else -30)
        .configure_title(color=_INK, fontSize=14, fontWeight=600, anchor="start")
        .configure_legend(labelColor=_INK, titleColor=_QUIET, labelLimit=240)
    )
    return styled


def report(
    result: Result,
    path: Union[str, "os.PathLike[str]", None] = None,
    *,
    title: str = "Runs",
    question: str = "What do these runs give?",
    plots: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Returns the report of a result as one HTML page, which loads nothing from the network, as studies write
    it.

    :param path: the output file, if any.
    :param plots: plots, each with the keys of a study file's ``[[plots]]``: ``title``, ``caption``, ``kind``
        (``"bar"``, ``"line"``, ``"stack"``, ``"heat-map"``), ``x``, ``y``, ``y_label``, ``series``,
        ``relative_to``, …
    :returns: the page.
    """
    page: Optional[str] = None
    report_path = getattr(result, "report_path", None)
    if report_path is not None and not plots:
        with open(report_path, encoding="utf-8") as file:
            page = file.read()
    if page is None:
        if result.command is None:
            raise RequestError(
                "a report needs the runs of a single command; accepted: a result of one command, or of a study"
            )
        lines = [
            f"title = {_toml(title)}",
            f"question = {_toml(question)}",
            f"command = {_toml(result.command)}",
            "[grid]",
        ]
        for plot in plots:
            lines += ["[[plots]]", *(f"{key} = {_toml(value)}" for key, value in plot.items())]
        study = _native.Study.read("report", "\n".join(lines) + "\n")
        # Give a remark in place of a command, because no command repeats runs with policies in Python.
        page = study.draw(result._table, ["made with the Python package; run_id names each run"], False)
    if path is not None:
        _native.write_file(os.fspath(path), page.encode())
    return page


def _toml(value: Any) -> str:
    from .description import _toml as text

    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return text(value)
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{text(str(key))} = {_toml(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_toml(inner) for inner in value) + "]"
    raise RequestError(
        f"{value!r} is a {type(value).__name__}; accepted in a plot: text, numbers, flags, lists, and "
        "dictionaries of them"
    )


__all__ = ["PALETTE", "chart", "report"]
