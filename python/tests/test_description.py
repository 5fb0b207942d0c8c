"""Tests that a run has the same description in Python, on the command line and in TOML."""

import dataclasses
import inspect
import pickle

import pytest

import fulgurite
from fulgurite import Benchmark, Characterisation, Engine, Measure, Pool, Requests, Run, Stack, Translation, _native

#: The settings that each command requires.
REQUIRED = {
    "pool": {"workload": "zipf"},
    "gc": {"workload": "zipf"},
    "replay": {"workload": "financial-like"},
    "bench": {"benchmark": "ycsb-a"},
    "profile": {"device": "p4510"},
}


def test_help_documents_the_fields():
    classes = [cls for cls in vars(fulgurite).values() if isinstance(cls, type)]
    tuples = [cls for cls in classes if issubclass(cls, tuple)]
    assert fulgurite.Segment in tuples
    for cls in tuples:
        abouts = {name: getattr(cls, name).__doc__ for name in cls._fields}
        # A comment may describe two fields, so only the first of them has it.
        assert not str(abouts[cls._fields[0]]).startswith("Alias for field"), cls
    assert fulgurite.Segment.valid_pages.__doc__ == "The number of valid pages, which collection would copy."
    shapes = [cls for cls in classes if dataclasses.is_dataclass(cls)]
    assert fulgurite.Pool in shapes
    for cls in shapes:
        for known in dataclasses.fields(cls):
            assert f"\n    {known.name}: " in inspect.getdoc(cls).replace("\n", "\n    "), (cls, known.name)


@pytest.mark.parametrize("name", fulgurite.studies())
def test_every_run_of_every_study_has_all_forms(name):
    study = fulgurite.Study(name)
    grids = _native.Study.open(name).grids(False, None)
    cells = [run for _, command, settings in grids for run in fulgurite.grid(command, **settings)]
    assert cells == study.runs() and cells
    for run in cells:
        again = Run.from_settings(run.command, run.settings())
        assert again == run
        assert Run.from_toml(run.to_toml()) == run
        assert pickle.loads(pickle.dumps(run)) == run


def test_all_forms_have_one_id():
    # Rust builds the runs of the study independently; their ids are in the rows.
    text = """
        title = "t"
        question = "q"
        command = "pool"
        [grid]
        workload = ["zipf", "mixed-skewed"]
        device = "none"
        frames = [50, "6%"]
        ops = 2000
    """
    rows = fulgurite.sweep(fulgurite.Study.from_toml(text).runs())
    runs = [rows.run_of(at) for at in range(len(rows))]
    assert rows["run_id"] == [run.id for run in runs] == [Run.from_toml(run.to_toml()).id for run in runs]
    assert len(set(rows["run_id"])) == 4


def test_a_study_and_a_sweep_over_its_runs_give_the_same_table(tmp_path):
    text = """
        title = "t"
        question = "q"
        command = "pool"
        [grid]
        workload = "zipf"
        device = "none"
        replacement = ["lru", "clock"]
        ops = 2000
    """
    study = fulgurite.Study.from_toml(text)
    of_study = study.run(tmp_path / "out")
    assert of_study.to_csv() == fulgurite.sweep(study.runs()).without_cost().to_csv()
    assert (tmp_path / "out" / "table.csv").read_text() == of_study.to_csv()


@pytest.mark.parametrize("command", REQUIRED)
def test_every_setting_is_a_field(command):
    for setting in fulgurite.settings(command):
        value = "yes" if not setting.written else REQUIRED[command].get(setting.name, "7")
        run = Run.from_settings(command, {**REQUIRED[command], setting.name: value})
        assert run.command == command
        assert run.settings()[setting.name] == value, setting.name
        # The field is documented.
        owners = [Stack, Pool, Engine, Translation, Requests, Benchmark, Characterisation, Measure, Run]
        fields = [owner for owner in owners if setting.name in {field.name for field in dataclasses.fields(owner)}]
        assert fields, setting.name
        for owner in fields:
            source = inspect.getsource(owner).splitlines()
            place = next(at for at, line in enumerate(source) if line.strip().startswith(f"{setting.name}:"))
            assert source[place - 1].strip().startswith("#:"), f"{owner.__name__}.{setting.name} has no documentation"


def test_the_classes_have_the_structure_of_a_run():
    pool = Run(Stack(device="p4510", pool=Pool(replacement="clock", frames=100)), Requests("zipf", ops=5_000), seed=7)
    assert pool.command == "pool"
    assert pool.settings() == {
        "workload": "zipf",
        "device": "p4510",
        "replacement": "clock",
        "frames": "100",
        "ops": "5000",
        "seed": "7",
    }
    counted = Run(Stack(device=Translation(logical=8 << 20, segment="64KiB")), Requests("zipf"), Measure(groups=True))
    assert counted.command == "gc"
    assert counted.settings()["logical"] == "8388608B" and counted.settings()["groups"] == "yes"
    requests = Requests("t.msr", sort=True)
    assert Run(Stack(), requests).settings()["sort"] == "yes"
    steady = Run(Stack(), Requests("zipf", users=1), Measure(until_steady=True))
    assert steady.settings()["until_steady"] == "yes"
    assert Run(Stack("sata"), Requests("financial-like", speed=2)).settings()["speed"] == "2x"
    assert Run(Stack("sata"), Characterisation()).command == "profile"
    latency = Run(Stack("sata"), Characterisation(suite="latency", rates=20_000))
    assert latency.settings() == {"device": "sata", "suite": "latency", "rates": "20000", "seed": "42"}
    bench = Run(Stack(engine=Engine(memory="20%", reuse=False)), Benchmark("tpcc", users=8))
    assert (bench.command, bench.settings()["memory"], "reuse" in bench.settings()) == ("bench", "20%", False)


def test_settings_that_exclude_each_other_are_refused():
    refused = [
        (Run(Stack(pool=Pool()), Benchmark("tpcc")), "a stack with a pool does not go with bench"),
        (Run(Stack(engine=Engine()), Requests("zipf")), "a stack with an engine does not go with replay"),
        (Run(Stack(Translation(), pool=Pool()), Requests("zipf")), "does not go with pool"),
        (Run(Stack(pool=Pool()), Requests("zipf", rate=5)), "rate does not go with pool"),
        (Run(Stack(), Requests("financial-like"), Measure(explain=True)), "explain does not go with replay"),
    ]
    for run, sentence in refused:
        with pytest.raises(fulgurite.RequestError, match=sentence):
            run.settings()
    with pytest.raises(fulgurite.RequestError, match="^workload is missing$"):
        Run.from_settings("pool", {})
    with pytest.raises(fulgurite.RequestError, match="did you mean `replacement`"):
        Run.from_settings("pool", {"workload": "zipf", "replacment": "lru"})
    with pytest.raises(fulgurite.RequestError, match="the study has 2 runs"):
        Run.from_toml('title="t"\nquestion="q"\ncommand="pool"\n[grid]\nworkload="zipf"\nseed=[1,2]\n')


def test_a_grid_has_the_order_of_the_command():
    runs = fulgurite.grid("pool", seed=[1, 2], write_back="single,ace:n_w=8,n_e=8", workload="zipf")
    values = [(run.settings()["write_back"], run.seed) for run in runs]
    assert values == [("single", "1"), ("single", "2"), ("ace:n_w=8,n_e=8", "1"), ("ace:n_w=8,n_e=8", "2")]
    with pytest.raises(fulgurite.RequestError, match="--seed has no value"):
        fulgurite.grid("pool", workload="zipf", seed=[])
    with pytest.raises(fulgurite.RequestError, match="unknown command `pol`; accepted: bench, gc, pool"):
        fulgurite.grid("pol", workload="zipf")


@pytest.mark.parametrize("text", ['quote"d', "back\\slash", "new\nline", "tab\t", "ünïcode 𝄞", "\x7f\x01"])
def test_any_text_survives_toml(text):
    run = Run(Stack(pool=Pool()), Requests(text))
    # Commas and equals signs have a special meaning, as on the command line. These characters have none.
    assert Run.from_toml(run.to_toml()).load.workload == text


def test_arrays_and_series_are_axes():
    numpy = pytest.importorskip("numpy")
    expected = fulgurite.grid("pool", workload="zipf", frames=[50, 100])
    assert fulgurite.grid("pool", workload="zipf", frames=numpy.array([50, 100])) == expected
    assert fulgurite.grid("pool", workload="zipf", frames=numpy.arange(50, 101, 50)) == expected
    assert fulgurite.grid("pool", workload="zipf", frames=numpy.int64(50)) == expected[:1]
    for library in ("pandas", "polars"):
        series = pytest.importorskip(library).Series([50, 100])
        assert fulgurite.grid("pool", workload="zipf", frames=series) == expected


def test_several_files_and_curves_are_settings():
    run = Run(
        Stack("none", pool=Pool("sieve")),
        Requests("a.spc,b.spc", files="volumes"),
        Measure(curve=True, sample="1/16"),
    )
    settings = run.settings()
    assert [settings[name] for name in ("files", "curve", "sample")] == ["volumes", "yes", "1/16"]
