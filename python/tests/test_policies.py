"""Tests that policies in Python work in place of the built-in ones, and that invalid ones are refused."""

import gc
import os
import re
import subprocess
import sys
import time
import weakref

import pytest

import fulgurite

SMALL = {"workload": "mixed-skewed", "pages": 500, "frames": 40, "ops": 3000}
COUNTED = {"workload": "zipf", "logical": "1792KiB", "physical": "2MiB", "segment": "64KiB", "ops": 3000}


class Lru(fulgurite.Replacement):
    """Evicts the least recently used frame, as the built-in policy `lru` does."""

    name = "py-lru"

    def __init__(self, frames):
        self.used = {}

    def insert(self, frame, page, write):
        self.used[frame] = None

    def insert_prefetched(self, frame, page):
        self.used = {frame: None, **self.used}

    def access(self, frame, write):
        del self.used[frame]
        self.used[frame] = None

    def remove(self, frame):
        del self.used[frame]

    def order(self):
        yield from list(self.used)


class Evicting(Lru):
    """Evicts the least recently used frame through its own method `evict`."""

    def evict(self, pinned):
        frame = next(frame for frame in self.used if frame not in pinned)
        del self.used[frame]
        return frame


class Parity(fulgurite.Placement):
    """Separates copies from host writes, as the built-in policy `sep-gc` does."""

    def place(self, write):
        return int(write.copied)


class Emptiest(fulgurite.Victim):
    """Picks the segment with the fewest valid pages, as `greedy` does, and the first one sealed among equal
    ones."""

    def pick(self, segments, now):
        return min(segments, key=lambda segment: segment.valid_pages).number


class Oldest(fulgurite.Victim):
    """Picks the segment that was sealed first, as the built-in policy `fifo` does."""

    def pick(self, segments, now):
        assert [segment.sealed_at for segment in segments] == sorted(segment.sealed_at for segment in segments)
        return segments[0].number


def test_a_replacement_policy_has_the_misses_of_the_built_in_one():
    result = fulgurite.sweep(
        "pool",
        **SMALL,
        device="p4510",
        replacement=["lru", Lru, Evicting],
        write_back="single,ace,ace+raw",
        prefetch="both",
    )
    for figure in ("misses", "write_ios", "elapsed_ns", "prefetch_hits"):
        assert result[figure][0:3] == result[figure][3:6] == result[figure][6:9]
    assert result["replacement"] == ["lru"] * 3 + ["py-lru"] * 3 + ["py-lru"] * 3
    assert len(set(result["run_id"])) == 9


def test_a_policy_is_part_of_a_description():
    run = fulgurite.Run(
        fulgurite.Stack(device="none", pool=fulgurite.Pool(replacement=Lru, frames=40)),
        fulgurite.Requests("mixed-skewed", ops=2000, pages=500),
    )
    assert (
        fulgurite.run(run)[0]["misses"] == fulgurite.run("pool", **{**SMALL, "ops": 2000}, device="none")[0]["misses"]
    )
    assert fulgurite.Run.from_settings("pool", run.settings()).stack.pool.replacement is Lru
    with pytest.raises(fulgurite.RequestError, match="TOML cannot represent"):
        run.to_toml()


def test_a_changed_policy_has_another_id():
    class Other(Lru):
        bits = 1

    before = fulgurite.run("pool", **SMALL, device="none", replacement=Other)["run_id"]
    assert before == fulgurite.run("pool", **SMALL, device="none", replacement=Other)["run_id"]
    Other.bits = 2
    assert before != fulgurite.run("pool", **SMALL, device="none", replacement=Other)["run_id"]


OWN = """
import fulgurite

class Own(fulgurite.Replacement):
    weights = (1, 2)
    kinds = frozenset({"read", "write", "trim"})
    def __init__(self, frames):
        self.used, self.now, self.other, self.last = {}, 0, None, None
    def insert(self, frame, page, write):
        self.used[frame] = page in {"a", "b", "c", "d"}
    def access(self, frame, write):
        self.now += 1
    def remove(self, frame):
        del self.used[frame]
    def order(self):
        return [frame for frame in sorted(self.used, key=lambda frame: -frame)]
"""


def test_the_id_of_a_policy_does_not_depend_on_its_location(tmp_path):
    shown = "\nif __name__ == '__main__':\n    print(fulgurite.policies.text_of(Own))\n"

    def said(*typed, hashes="random"):
        more = {"env": {**os.environ, "PYTHONHASHSEED": hashes}, "cwd": tmp_path, "capture_output": True, "text": True}
        done = subprocess.run([sys.executable, *typed], **more)
        assert done.returncode == 0, done.stderr
        return done.stdout

    (tmp_path / "own.py").write_text(OWN + shown)
    (tmp_path / "lower.py").write_text(
        "\n# Something above.\n\n\n" + OWN.replace("    def order", "\n    def order") + shown
    )
    ids = {said("own.py", hashes=hashes) for hashes in "12345"}
    ids |= {
        said("lower.py"),
        said("-c", OWN + shown),
        said("-c", "import own, fulgurite; print(fulgurite.policies.text_of(own.Own))"),
    }
    ids.add(
        said(
            "-c",
            "import own, multiprocessing, fulgurite\nif __name__ == '__main__':\n    "
            "print(multiprocessing.get_context('spawn').Pool(1).apply(fulgurite.policies.text_of, [own.Own]))",
        )
    )
    assert len(ids) == 1 and re.fullmatch(r"Own@[0-9a-f]{12}\n", ids.pop())


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("+= 1", "+= 2"),
        ("-frame", "frame"),
        ('"trim"', '"trims"'),
        ("(1, 2)", "(1, 3)"),
        ("[frame for", "[frame + 0 for"),
        ("page in", "page not in"),
        ("frames):", "frames, more=1):"),
    ],
)
def test_a_changed_line_changes_the_id(before, after):
    def text(code):
        names = {"__name__": "own"}
        exec(code, names)
        return fulgurite.policies.text_of(names["Own"])

    assert text(OWN) == text(OWN) != text(OWN.replace(before, after))


def test_placement_and_victims_agree_with_the_built_in_ones():
    ours = fulgurite.sweep("gc", **COUNTED, placement="sep-gc", victim="fifo")
    own = fulgurite.sweep("gc", **COUNTED, placement=Parity, victim=Oldest)
    figures = ["waf", "erases", "gc_pages_copied"]
    assert [ours[0][name] for name in figures] == [own[0][name] for name in figures]
    assert (own[0]["placement"], own[0]["victim"]) == ("Parity", "Oldest")
    emptiest, greedy, oldest = (
        fulgurite.run("gc", **COUNTED, victim=victim)[0]["waf"] for victim in (Emptiest, "greedy", Oldest)
    )
    # Among equal segments the built-in policy picks another one, so the figures may differ slightly.
    assert emptiest == pytest.approx(greedy, rel=0.05) and emptiest < 0.9 * oldest


def test_a_policy_works_in_a_drive_too():
    settings = {
        "workload": "fio-u",
        "device": "sata:channels=1,chips=1,dies=1,planes=1,blocks=64,pages=32",
        "ops": 500,
        "users": 4,
    }
    ours = fulgurite.run("replay", **settings, placement="sep-gc", victim="fifo")
    own = fulgurite.run("replay", **settings, placement=Parity, victim=Oldest)
    assert own[0]["latency_mean_ns"] == ours[0]["latency_mean_ns"] and own[0]["placement"] == "Parity"


class Reversed(Lru):
    """Evicts from the wrong end of its order."""

    def evict(self, pinned):
        return self.used.popitem()[0]


class Forgetful(Lru):
    """Its order lacks a frame."""

    def order(self):
        return list(self.used)[1:]


class Twice(Lru):
    """Its order contains a frame twice."""

    def order(self):
        return list(self.used) * 2


class Stale(Lru):
    """Its order contains removed frames."""

    def remove(self, frame):
        pass


class Fickle(Lru):
    """Its order depends on the number of calls."""

    asked = 0

    def order(self):
        type(self).asked += 1
        frames = list(self.used)
        return frames if self.asked % 2 else frames[::-1]


@pytest.mark.parametrize(
    ("policy", "sentence"),
    [
        (Reversed, r"evict\(\) gives frame \d+, and order\(\) gave frame \d+ first"),
        (Forgetful, r"order\(\) ends before frame \d+, which holds a page"),
        (Twice, r"order\(\) gives frame \d+ twice"),
        (Stale, r"order\(\) gives frame \d+ which holds no page"),
        (Fickle, "the order law is broken"),
    ],
)
def test_the_order_law_is_checked_before_the_first_run(policy, sentence):
    with pytest.raises(fulgurite.PolicyError, match=f"^py-lru: {sentence}.*; accepted: "):
        fulgurite.check_policy(policy)
    with pytest.raises(fulgurite.PolicyError, match=sentence):
        fulgurite.run("pool", **SMALL, device="none", replacement=policy)


def test_an_exception_of_a_policy_is_raised_unchanged():
    class Raising(Lru):
        def access(self, frame, write):
            raise LookupError(frame)

    with pytest.raises(LookupError):
        fulgurite.run("pool", **SMALL, device="none", replacement=Raising)

    class Outside(fulgurite.Placement):
        def place(self, write):
            return 2

    with pytest.raises(fulgurite.PolicyError, match=r"^Outside: place\(\) gives stream 2 of 2; accepted: 0 to 1$"):
        fulgurite.run("gc", **COUNTED, placement=Outside)

    class Elsewhere(fulgurite.Victim):
        def pick(self, segments, now):
            return 10**6

    with pytest.raises(fulgurite.PolicyError, match=r"^Elsewhere: pick\(\) gives segment 1000000"):
        fulgurite.run("gc", **COUNTED, victim=Elsewhere)
    kept = fulgurite.sweep("gc", **COUNTED, victim=["greedy", Elsewhere], on_error="keep")
    assert len(kept) == 1 and "Elsewhere" in str(kept.failures[0].error)


@pytest.mark.parametrize(
    ("kind", "base", "method", "answer", "sentence"),
    [
        ("replacement", Lru, "order", lambda self: None, r"order\(\) gives None, of type NoneType; accepted: frames"),
        (
            "replacement",
            Lru,
            "order",
            lambda self: [str(frame) for frame in self.used],
            r"order\(\) gives '\d+', of type str; accepted: numbers",
        ),
        (
            "replacement",
            Lru,
            "evict",
            lambda self, pinned: None,
            r"evict\(\) gives None, of type NoneType; accepted: the number of a frame",
        ),
        (
            "placement",
            Parity,
            "place",
            lambda self, write: "hot",
            r"place\(\) gives 'hot', of type str; accepted: 0 to 1$",
        ),
        ("placement", Parity, "place", lambda self, write: -1, r"place\(\) gives -1, of type int; accepted: 0 to 1$"),
        (
            "victim",
            Oldest,
            "pick",
            lambda self, segments, now: segments[0],
            r"pick\(\) gives Segment\(number=.*; accepted: the `number` of a segment$",
        ),
    ],
)
def test_an_answer_of_another_type_is_a_policy_error(tmp_path, kind, base, method, answer, sentence):
    policy = type("Odd", (base,), {method: answer, "name": "odd"})
    command, settings = ("pool", {**SMALL, "device": "none"}) if kind == "replacement" else ("gc", COUNTED)
    usual = {"replacement": "lru", "placement": "none", "victim": "greedy"}[kind]
    with pytest.raises(fulgurite.PolicyError, match=f"^odd: {sentence}"):
        fulgurite.run(command, **settings, **{kind: policy})
    for more in ({}, {"out": tmp_path / "out"}):
        if more:
            pytest.importorskip("pyarrow")
        kept = fulgurite.sweep(command, **settings, **{kind: [usual, policy]}, on_error="keep", **more)
        (failure,) = kept.failures
        assert len(kept) == 1 and type(failure.error) is fulgurite.PolicyError
        assert str(failure.error).startswith("odd: ")


def test_a_name_is_text():
    with pytest.raises(fulgurite.PolicyError, match="^Named: name is 5, of type int; accepted: text"):
        fulgurite.run("pool", **SMALL, device="none", replacement=type("Named", (Lru,), {"name": 5}))


def test_a_victim_policy_that_gains_nothing_ends_the_run():
    class Fullest(fulgurite.Victim):
        def pick(self, segments, now):
            return max(segments, key=lambda segment: segment.valid_pages).number

    until = time.monotonic() + 30

    def wait(now):
        assert time.monotonic() < until, "the run goes on for ever"

    with pytest.raises(
        fulgurite.PolicyError,
        match=r"^Fullest: pick\(\) gives full segments, \d+ in a row, and no page is gained; accepted: ",
    ):
        fulgurite.run("gc", **COUNTED, victim=Fullest, progress=wait)


@pytest.mark.parametrize(
    ("kind", "base", "command", "axes"),
    [
        ("replacement", Lru, "pool", {**SMALL, "ops": 50, "device": "none"}),
        ("placement", Parity, "gc", {**COUNTED, "ops": 50}),
        ("victim", Emptiest, "gc", {**COUNTED, "ops": 50}),
    ],
)
def test_old_definitions_of_a_class_are_released(kind, base, command, axes):
    defined = []
    for number in range(40):
        policy = type("Mine", (base,), {"number": number, "name": None})
        fulgurite.run(command, **axes, **{kind: policy}, progress=False)
        defined.append(weakref.ref(policy))
        del policy
    gc.collect()
    alive = [number for number, policy in enumerate(defined) if policy() is not None]
    # The classes used last are cached, so that they are checked only once.
    assert len(alive) <= 32 and alive == list(range(40 - len(alive), 40))


def test_a_class_that_is_not_a_policy_is_refused():
    class Half(fulgurite.Replacement):
        def insert(self, frame, page, write):
            pass

    for settings, sentence in [
        ({"replacement": Half}, "--replacement Half lacks access, order, remove"),
        ({"replacement": Parity}, "--replacement Parity is not a replacement policy"),
        ({"device": "none", "placement": Parity}, "--placement Parity does not go with none"),
        ({"write_back": Lru}, "--write-back takes no class"),
    ]:
        with pytest.raises(fulgurite.RequestError, match=sentence):
            fulgurite.run("pool", **{**SMALL, **settings})


ENDLESS = """
import os, signal, sys, threading, time
import fulgurite

class Endless(fulgurite.Replacement):
    def __init__(self, frames):
        self.used, self.is_run = {}, frames == 40
    def insert(self, frame, page, write):
        self.used[frame] = None
    def access(self, frame, write):
        while self.is_run:
            inside[0] = True
    def remove(self, frame):
        del self.used[frame]
    def order(self):
        return list(self.used)

# Without a lock: an exception may be raised while it is held.
inside = [False]

def wait():
    while not inside[0]:
        time.sleep(0.01)

def run():
    # Without this the exception that ends the thread would be printed.
    threading.excepthook = lambda args: None
    fulgurite.sweep(
        "pool", workload="mixed-skewed", device="none", pages=500, frames=40, ops=3000, seed=[1, 2], replacement=Endless
    )

def spent():
    before = time.process_time()
    time.sleep(0.2)
    return time.process_time() - before
"""


@pytest.mark.parametrize(
    ("code", "said"),
    [
        # The interrupt ends the method, and the program continues.
        (
            "threading.Thread(target=lambda: (wait(), os.kill(os.getpid(), signal.SIGINT))).start()\n"
            "try:\n    run()\nexcept KeyboardInterrupt:\n    print('idle' if spent() < 0.1 else 'busy')",
            "idle",
        ),
        # The end of the program interrupts the method.
        ("threading.Thread(target=run, daemon=True).start()\nwait()\nprint('end')", "end"),
    ],
)
def test_a_policy_in_a_long_method_ends_with_its_run_and_with_the_program(code, said):
    # Tests that a shell starts in the background ignore interrupts.
    begin = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
    done = subprocess.run([sys.executable, "-c", begin + ENDLESS + code], capture_output=True, text=True, timeout=30)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{said}\n", "")
