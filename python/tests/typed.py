"""A program that uses the package with every type written down. It is not run: mypy, with `strict`, must find
nothing in it."""

from __future__ import annotations

from typing import Any, Dict, Iterator, List, Optional

import fulgurite
from fulgurite import Benchmark, Engine, Measure, Pool, Requests, Run, Stack, Translation


class Fifo(fulgurite.Replacement):
    """First in, first out."""

    def __init__(self, frames: int) -> None:
        self.held: Dict[int, int] = {}

    def insert(self, frame: int, page: int, write: bool) -> None:
        self.held[frame] = page

    def access(self, frame: int, write: bool) -> None:
        pass

    def remove(self, frame: int) -> None:
        del self.held[frame]

    def order(self) -> Iterator[int]:
        return iter(list(self.held))


class Apart(fulgurite.Placement):
    """Separates copies from host writes."""

    def place(self, write: fulgurite.Write) -> int:
        return int(write.copied)


def runs() -> List[Run]:
    """A run of each command."""
    return [
        Run(Stack("p4510", pool=Pool(replacement=Fifo, frames="6%", page=4096)), Requests("zipf", ops=1000), seed=7),
        Run(Stack(Translation(logical="14MiB"), placement=Apart), Requests("zipf"), Measure(interval="25%")),
        Run(Stack(engine=Engine(memory="10%")), Benchmark("tpcc", users=8, time="1s")),
        *fulgurite.grid(
            "pool", workload=["zipf", "tpcc"], write_back="single,ace", seed=range(3), replacement=[Fifo, "lru"]
        ),
    ]


def use() -> None:
    """The values of results, stores and models."""
    result: fulgurite.Result = fulgurite.sweep(runs(), threads=2, on_error="keep", progress=lambda now: print(now.done))
    row: Dict[str, Any] = result[0]
    misses: List[Any] = result["misses"]
    failed: List[Exception] = [failure.error for failure in result.failures]
    waf: float = fulgurite.waf_fifo(0.07)
    with fulgurite.Store.create("a", size=1 << 24) as store, store.transaction() as transaction:
        value: Optional[bytes] = transaction["users"].get(b"ada")
        changed: int = store.transact(lambda inner: len(inner["users"]))
    cuts: fulgurite.Cuts = fulgurite.crashtest(["./program"], lambda folder, printed: len(folder + printed.decode()))
    lost: List[str] = [piece for violation in cuts.violations for piece in violation.cut.guilty]
    print(row, misses, failed, waf, value, changed, lost)
