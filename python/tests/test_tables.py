"""Tests results and traces in other libraries: Arrow, pandas, polars, numpy, Parquet."""

import csv
import io
import json

import pytest

import fulgurite

np = pytest.importorskip("numpy")
pa = pytest.importorskip("pyarrow")


@pytest.fixture(scope="module")
def result():
    # Only one run has the column waf.
    runs = fulgurite.grid("pool", workload="mixed-skewed", device=["none", "p4510"], ops=2000)
    return fulgurite.sweep(runs)


def test_arrow_has_every_cell_with_its_type(result):
    table = result.to_arrow()
    assert table.column_names == result.columns
    assert table.schema.field("misses").type == pa.uint64()
    assert table.schema.field("hit_ratio").type == pa.float64()
    assert table.schema.field("run_id").type == pa.string()
    for at, row in enumerate(table.to_pylist()):
        assert {name: cell for name, cell in row.items() if cell is not None} == result[at]
    assert table.column("waf").null_count == 1
    about = table.schema.field("elapsed_ns").metadata
    assert about[b"unit"] == b"ns" and about[b"meaning"]
    table.validate(full=True)


def test_arrow_shares_the_memory(result):
    first, second = result.to_arrow(), result.to_arrow()
    addresses = [table.column("misses").chunk(0).buffers()[1].address for table in (first, second)]
    assert addresses[0] == addresses[1]
    # The Arrow table outlives the result.
    kept = fulgurite.run("pool", workload="zipf", device="none", ops=1000).to_arrow()
    assert kept.column("ops").to_pylist() == [1000]
    # An unread stream is released.
    for _ in range(100):
        result.__arrow_c_stream__()


def test_an_empty_result_is_an_empty_table():
    empty = fulgurite.sweep([])
    assert len(empty) == 0 and empty.to_arrow().num_rows == 0 and empty.rows == [] and empty.finding is None
    assert empty.to_csv() == "\n" and str(empty) is not None and empty._repr_html_()


def test_text_forms(result, tmp_path):
    rows = list(csv.DictReader(io.StringIO(result.to_csv(tmp_path / "t.csv"))))
    assert [int(row["misses"]) for row in rows] == result["misses"]
    assert (tmp_path / "t.csv").read_text() == result.to_csv()
    # A file appears complete or not at all, as the command's files do, and replaces only a file.
    with pytest.raises(fulgurite.RequestError, match="is a folder; accepted: a file"):
        result.to_csv(tmp_path)
    with pytest.raises(fulgurite.RequestError, match="cannot be written"):
        result.to_parquet(tmp_path / "none" / "t.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
    assert [row["misses"] for row in json.loads(result.to_json())] == result["misses"]


def test_parquet(result, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    result.to_parquet(tmp_path / "t.parquet")
    assert parquet.read_table(tmp_path / "t.parquet").to_pylist() == result.to_arrow().to_pylist()


def test_pandas(result):
    pandas = pytest.importorskip("pandas")
    frame = result.to_pandas()
    assert list(frame.columns) == result.columns and list(frame["misses"]) == result["misses"]
    assert frame["misses"].dtype == "uint64" and frame["hit_ratio"].dtype == "float64"
    assert pandas.isna(frame["waf"][0]) and frame["waf"][1] == result["waf"][1]
    assert frame["erases"].dtype == "UInt64"


def test_polars(result):
    polars = pytest.importorskip("polars")
    frame = result.to_polars()
    assert frame.columns == result.columns and frame["misses"].to_list() == result["misses"]
    assert frame["misses"].dtype == polars.UInt64


def trace(**columns):
    given = {"start": [0, 4096, 8192], "op": [0, 1, 2], "length": 4096, "at_ns": [0, 5, 5]}
    return fulgurite.Trace.from_numpy(**{**given, **columns})


def test_a_trace_converts_to_numpy_and_arrow_and_back():
    made = trace()
    columns = made.to_numpy()
    assert {name: list(array) for name, array in columns.items()} == {
        "at_ns": [0, 5, 5],
        "op": [0, 1, 2],
        "start": [0, 4096, 8192],
        "length": [4096, 4096, 4096],
    }
    assert len(made) == 3 and made.unit == "bytes" and not columns["start"].flags.writeable
    again = fulgurite.Trace.from_arrow(made.to_arrow())
    assert all((again.to_numpy()[name] == columns[name]).all() for name in columns)
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(made)["op"].to_list() == [0, 1, 2]


def test_a_trace_accepts_any_integers():
    for kind in ("u1", ">i4", "f8", "u8"):
        assert list(trace(start=np.array([1, 2, 3], dtype=kind)).to_numpy()["start"]) == [1, 2, 3]
    strided = np.arange(6)[::2]
    assert list(trace(start=strided).to_numpy()["start"]) == [0, 2, 4]
    top = 2**64 - 4097
    assert trace(start=np.array([0, 0, top], dtype="u8")).to_numpy()["start"][2] == top


@pytest.mark.parametrize(
    ("columns", "sentence"),
    [
        ({"op": [0, 1, 3]}, "op 3 is not an operation"),
        ({"op": [0, 1, 256]}, "op 256 is not an operation"),
        ({"length": [1, 1, 0]}, "request 2: length is 0"),
        ({"at_ns": [0, 9, 5]}, "request 2: at_ns 5 is before its predecessor's 9"),
        ({"start": np.array([0, 0, 2**64 - 1], dtype="u8")}, "request 2: start .* end beyond"),
        ({"start": [0, -1, 0]}, "start has the value -1"),
        ({"start": [0.5, 1, 2]}, "start has values of type float64"),
        ({"start": [[0, 1, 2]]}, "start has 2 dimensions"),
        ({"op": [0, 1]}, "as many of each"),
        ({"start": [], "op": [], "length": [], "at_ns": []}, "at least one request"),
        ({"unit": "sectors"}, "unit='sectors' is unknown"),
    ],
)
def test_invalid_traces_are_refused(columns, sentence):
    with pytest.raises(fulgurite.RequestError, match=sentence):
        trace(**columns)


def test_a_trace_in_a_file_is_a_workload(tmp_path):
    rng = np.random.default_rng(5)
    start = rng.integers(0, 400, 5000) * 4096
    made = fulgurite.Trace.from_numpy(
        start=start, op=rng.integers(0, 2, 5000), length=4096, at_ns=np.arange(5000) * 1000
    )
    path = tmp_path / "made.csv.zst"
    told = made.save(path, "msr")
    assert told[0]["requests"] == 5000
    # Nothing tells who wrote a trace file, so it is replaced only on request.
    before = path.read_bytes()
    with pytest.raises(fulgurite.RequestError, match="exists; accepted: another file, or --force"):
        made.save(path, "msr")
    assert path.read_bytes() == before and made.save(path, "msr", force=True)[0]["requests"] == 5000
    read = fulgurite.Trace.read(path, "msr")
    assert all((read.to_numpy()[name] == made.to_numpy()[name]).all() for name in ("op", "start", "length"))
    assert fulgurite.summary(path, "msr")[0]["footprint_pages"] == len(set(start))
    # A pool with a frame for every page misses each page once.
    run = fulgurite.run("pool", workload=path, format="msr", device="none", frames=len(set(start)))
    assert run[0]["misses"] == len(set(start)) and run[0]["ops"] == 5000
    with pytest.raises(fulgurite.RequestError, match="unknown format `msrr`"):
        made.save(tmp_path / "x", "msrr")
    with pytest.raises(fulgurite.RequestError, match="cannot be opened"):
        fulgurite.Trace.read(tmp_path / "none")


@pytest.mark.parametrize("wrong", [float("inf"), float("nan"), 2.0**64, 1e30])
def test_values_beyond_64_bits_are_refused(wrong):
    for column in ("start", "length", "at_ns"):
        with pytest.raises(
            fulgurite.RequestError, match=rf"^{column} has the value .*; accepted: whole numbers from 0 to 2\^64 - 1$"
        ):
            fulgurite.Trace.from_numpy(**{"start": [1.0], "op": 0, column: [wrong]})
