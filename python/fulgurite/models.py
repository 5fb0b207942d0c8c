"""Write amplification by calculation: closed forms, and MiDAS's model.

The spare ρ is (T − U)/U: U logical pages, and T physical pages that can hold data or garbage when a victim is picked. The
erased segments in reserve do not count. Write amplification (WAF) is flash pages programmed for each page that the host writes.
"""

from __future__ import annotations

import math
from typing import List, NamedTuple, Optional, Sequence, Tuple

from . import _native
from .errors import RequestError
from .fields import explain


def _within(most: int, least: int = 0, **given: int) -> None:
    """Refuses what is no count, with its name."""
    for name, value in given.items():
        if not isinstance(value, int) or not least <= value <= most:
            raise RequestError(f"{name}={value!r} is out of range; accepted: {least} to {most}")


def _real(**given: float) -> None:
    """Refuses what is no number from 0 on, with its name."""
    for name, value in given.items():
        if not 0 <= value < math.inf:
            raise RequestError(f"{name}={value!r} is out of range; accepted: a number from 0 on")


def waf_fifo(rho: float) -> float:
    """WAF of uniform random writes where the oldest segment is collected (Desnoyers, 2014).

    >>> round(waf_fifo(0.07), 2)
    7.82
    """
    return _native.waf_fifo(rho)


def waf_greedy(rho: float, segment_pages: int) -> float:
    """WAF of uniform random writes where the emptiest segment is collected, by a mean-field balance.

    >>> round(waf_greedy(0.07, 512), 2)
    7.71
    """
    _within(2**32 - 1, segment_pages=segment_pages)
    return _native.waf_greedy(rho, segment_pages)


def waf_random(rho: float) -> float:
    """WAF where any segment is collected: (1 + ρ)/ρ.

    >>> waf_random(0.25)
    5.0
    """
    return _native.waf_random(rho)


def waf_fifo_two_classes(rho: float, hot_writes: float, hot_pages: float) -> float:
    """WAF under FIFO where the share ``hot_writes`` of the writes goes to the share ``hot_pages`` of the pages (Desnoyers,
    2014).

    >>> waf_fifo_two_classes(0.0737, 0.9, 0.1) > waf_fifo(0.0737)
    True
    """
    return _native.waf_fifo_two_classes(rho, hot_writes, hot_pages)


class Lifetimes:
    """How long pages live: the share of page writes whose page is written again after so many page writes.

    :param bucket: page writes in a bucket.
    :param counts: for each bucket the intervals between two writes of a page that end in it.
    :param longer: for each bucket the intervals that are known only to be longer; as many as ``counts``, or none.
    :param beyond: intervals that are longer than all buckets.
    """

    def __init__(self, bucket: int, counts: Sequence[int], longer: Sequence[int] = (), beyond: int = 0) -> None:
        _within(2**32 - 1, bucket=bucket)
        for name, numbers in (("counts", counts), ("longer", longer), ("beyond", (beyond,))):
            for number in numbers:
                _within(2**64 - 1, **{name: number})
        self._lifetimes = _native.Lifetimes(bucket, list(counts), list(longer), beyond)

    @property
    def range(self) -> float:
        """The longest interval, in page writes, that is told from never."""
        return self._lifetimes.range

    def survival(self, time: float) -> float:
        """S(t): the share of written pages that are still valid after ``time`` more page writes."""
        _real(time=time)
        return self._lifetimes.survival(time)

    def valid_among_last(self, time: float) -> float:
        """The valid pages among the last ``time`` page writes: the integral of S."""
        _real(time=time)
        return self._lifetimes.valid_among_last(time)


class Prediction(NamedTuple):
    """What MiDAS's model says of groups."""

    #: Pages written for each page of the host.
    waf: float
    #: The share of valid pages at collection, for G1 … GN.
    valid_shares: List[float]
    #: The share of the host's writes that goes to HOT, and the share of its pages that are valid at collection.
    hot: Tuple[float, float]


class Groups(NamedTuple):
    """Sizes of groups in segments, and what they promise."""

    #: HOT; 0 without one.
    hot: int
    #: G1 … G(N−1). GN has the rest.
    sized: List[int]
    #: What the model predicts for them.
    prediction: Prediction


def midas_predict(
    lifetimes: Lifetimes,
    sized: Sequence[int] = (),
    *,
    hot: int = 0,
    segments: int,
    segment_pages: int,
    valid_pages: float,
    greedy: bool = True,
    hot_class: float = 1.0,
) -> Optional[Prediction]:
    """What MiDAS's model (FAST 2024, sections 3.3 and 3.4) predicts for groups of these sizes.

    :param sized: segments of G1 … G(N−1).
    :param hot: segments of HOT.
    :param segments: segments of all groups.
    :param segment_pages: pages in a segment.
    :param valid_pages: valid pages in all.
    :param greedy: whether GN is collected greedily; otherwise first in, first out.
    :param hot_class: pages with lifetimes below this share of GN's mean make its hot class.
    :returns: None where the groups do not fit, or lifetimes are not known for long enough.
    """
    _within(2**32 - 1, hot=hot, segments=segments)
    _within(2**32 - 1, 1, segment_pages=segment_pages)
    _real(valid_pages=valid_pages, hot_class=hot_class)
    for size in sized:
        _within(2**32 - 1, sized=size)
    found = _native.midas_predict(
        lifetimes._lifetimes,
        sized=list(sized),
        hot=hot,
        segments=segments,
        segment_pages=segment_pages,
        valid_pages=valid_pages,
        greedy=greedy,
        hot_class=hot_class,
    )
    return None if found is None else Prediction(*found)


def midas_groups(
    lifetimes: Lifetimes,
    *,
    segments: int,
    segment_pages: int,
    valid_pages: float,
    greedy: bool = True,
    hot_class: float = 1.0,
    groups: int = 16,
) -> Optional[Groups]:
    """The sizes of groups for which MiDAS's model predicts the least write amplification (section 3.5 of the paper).

    :param groups: the most groups, HOT aside. The other parameters are those of :func:`midas_predict`.
    :returns: None where the model has nothing to say.
    """
    # The search tries each number of segments for each group.
    _within(2**20, segments=segments)
    _within(2**32 - 1, 1, segment_pages=segment_pages)
    _within(64, 1, groups=groups)
    _real(valid_pages=valid_pages, hot_class=hot_class)
    found = _native.midas_select(
        lifetimes._lifetimes,
        segments=segments,
        segment_pages=segment_pages,
        valid_pages=valid_pages,
        greedy=greedy,
        hot_class=hot_class,
        groups=groups,
    )
    return None if found is None else Groups(found[0], found[1], Prediction(*found[2]))


explain(globals())

__all__ = [
    "Groups",
    "Lifetimes",
    "Prediction",
    "midas_groups",
    "midas_predict",
    "waf_fifo",
    "waf_fifo_two_classes",
    "waf_greedy",
    "waf_random",
]
