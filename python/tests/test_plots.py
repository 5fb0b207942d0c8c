"""Tests charts and reports."""

import pytest

import fulgurite

pytest.importorskip("altair")


@pytest.fixture(scope="module")
def result():
    axes = {"workload": ["mixed-skewed", "zipf"], "write_back": ["single", "ace"], "seed": [1, 2, 3]}
    return fulgurite.sweep("pool", **axes, pages=2000, ops=2000, threads=1)


def layers(chart):
    """Returns the encodings of a chart's layers, and its data."""
    drawn = chart.to_dict()
    spec = drawn.get("spec", drawn)
    (data,) = drawn["datasets"].values() if "datasets" in drawn else (drawn["data"]["values"],)
    return [layer["encoding"] for layer in spec["layer"]], data


def test_the_main_figure_is_drawn_over_the_axis_that_differs(result):
    (main, rule), data = layers(result.plot())
    assert (main["x"]["field"], main["color"]["field"], main["y"]["title"]) == (
        "workload",
        "write_back",
        "throughput (ops/s)",
    )
    assert (rule["y"]["field"], rule["y2"]["field"]) == ("least", "greatest")
    # The chart shows the mean over the seeds, with the smallest and the largest value.
    (drawn,) = (cell for cell in data if cell["workload"] == "zipf" and cell["write_back"] == "ace")
    figures = [row["throughput_ops_s"] for row in result if row["workload"] == "zipf" and row["write_back"] == "ace"]
    assert len(figures) == 3 and drawn["mean"] == pytest.approx(sum(figures) / 3)
    assert (drawn["least"], drawn["greatest"]) == (min(figures), max(figures))


def test_units_are_scaled_and_panels_and_lines_are_drawn(result):
    encodings, data = layers(result.plot("elapsed_ns", x="write_back", panels="workload"))
    assert encodings[0]["y"]["title"] == "elapsed (ms)"
    assert max(cell["greatest"] for cell in data) == pytest.approx(max(result["elapsed_ns"]) / 1e6)
    grown = fulgurite.sweep("pool", workload="zipf", device="none", frames=[10, 20, 40], pages=2000, ops=2000)
    encodings, data = layers(grown.plot("hit_ratio"))
    assert (
        len(encodings) == 1 and encodings[0]["x"]["field"] == "frames" and encodings[0]["x"]["type"] == "quantitative"
    )
    assert [cell["frames"] for cell in data] == [10, 20, 40]


def test_numbers_are_on_the_x_axis_and_names_are_series():
    """A chart over numbers of frames has a line for each policy, and not a bar for each number. There is no
    line along `n_w`, because `n_w` follows from the name of the write-back policy."""
    grown = fulgurite.sweep(
        "pool", workload="zipf", device="none", replacement=["lru", "fifo"], frames=[10, 20, 40], pages=2000, ops=2000
    )
    (main,), data = layers(grown.plot("misses"))
    assert (main["x"]["field"], main["x"]["type"], main["color"]["field"]) == (
        "frames",
        "quantitative",
        "replacement",
    ) and len(data) == 6
    ways = ["ace:n_w=1", "ace:n_w=2", "ace:n_w=4"]
    names = fulgurite.sweep("pool", workload="zipf", replacement=["lru", "fifo"], write_back=ways, pages=2000, ops=2000)
    (main,), _ = layers(names.plot("misses"))
    assert len(set(names["n_w"])) == 3 and (main["x"]["field"], main["color"]["field"]) == ("replacement", "write_back")


def test_derived_columns_are_not_mixed():
    # The frames are a share of the pages, which differ between the workloads.
    result = fulgurite.sweep(
        "pool", workload=["zipf", "postgres-pgbench"], device="none", replacement=["lru", "fifo"], ops=2000
    )
    (main,), data = layers(result.plot("misses"))
    assert len(set(result["frames"])) == 2 and len(data) == 4
    assert (main["x"]["field"], main["color"]["field"]) == ("workload", "replacement")


def test_columns_that_cannot_be_drawn_are_refused(result):
    for settings, sentence in [
        ({"y": "elapsed"}, "unknown column `elapsed`"),
        ({"y": "workload"}, "y=workload contains names"),
        ({"kind": "pie"}, "kind='pie' is unknown"),
        ({"x": "workload", "kind": "line"}, "x=workload contains names, which a line cannot join"),
    ]:
        with pytest.raises(fulgurite.RequestError, match=sentence):
            result.plot(**settings)
    many = fulgurite.sweep(
        "pool",
        workload="zipf",
        device="none",
        frames=[10, 20],
        ops=500,
        pages=100,
        replacement="lru,fifo",
        write_back="single,ace:n_w=8",
    )
    with pytest.raises(
        fulgurite.RequestError,
        match="the rows differ in frames too and cannot be drawn together; accepted: panels='frames'",
    ):
        many.plot("misses")
    with pytest.raises(fulgurite.RequestError, match="no rows"):
        fulgurite.sweep([]).plot()


def test_a_report_is_the_page_of_a_study(result, tmp_path):
    plot = {
        "title": "Run time",
        "caption": "c",
        "kind": "bar",
        "x": "workload",
        "y": "elapsed_ns",
        "series": "write_back",
        "over": "seed",
        "y_label": "run time",
    }
    page = fulgurite.report(result, tmp_path / "report.html", title="Mine <1>", plots=[plot])
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
    assert "Mine &#60;1&#62;" in page and "Run time" in page and page.count("<script") == 2
    assert result[0]["run_id"] in page
    study = fulgurite.Study("waf-closed-form").run(tmp_path / "study", quick=True)
    assert fulgurite.report(study) == (tmp_path / "study" / "report.html").read_text(encoding="utf-8")
    with pytest.raises(fulgurite.RequestError, match="unknown column `nothing`"):
        fulgurite.report(result, plots=[{**plot, "y": "nothing"}])
