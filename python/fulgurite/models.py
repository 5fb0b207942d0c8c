"""Models write amplification by closed forms and by the model of MiDAS (Oh et al., FAST 2024).

The spare ratio ρ is (T − U)/U. U is the number of logical pages. T is the number of physical pages that can hold
valid or invalid data when a victim is picked; erased segments in reserve do not count. Write amplification (WAF)
is the number of flash pages programmed per page that the host writes.
"""

from __future__ import annotations

import math
from typing import List, NamedTuple, Optional, Sequence, Tuple

from . import _native
from .errors import RequestError
from .fields import explain


def _within(most: int, least: int = 0, **given: int) -> None:
    """Raises an exception for a value that is not a count in this range."""
    for name, value in given.items():
        if not isinstance(value, int) or not least <= value <= most:
            raise RequestError(f"{name}={value!r} is out of range; accepted: {least} to {most}")


def _real(**given: float) -> None:
    """Raises an exception for a value that is not a number from 0 on."""
    for name, value in given.items():
        if not 0 <= value < math.inf:
            raise RequestError(f"{name}={value!r} is out of range; accepted: a number from 0 on")


def waf_fifo(rho: float) -> float:
    """Returns the WAF of uniform random writes if the oldest segment is collected (Desnoyers, 2014).

    >>> round(waf_fifo(0.07), 2)
    7.82
    """
    return _native.waf_fifo(rho)


def waf_greedy(rho: float, segment_pages: int) -> float:
    """Returns the WAF of uniform random writes if the segment with the fewest valid pages is collected. This
    is a mean-field model.

    >>> round(waf_greedy(0.07, 512), 2)
    7.71
    """
    _within(2**32 - 1, segment_pages=segment_pages)
    return _native.waf_greedy(rho, segment_pages)


def waf_random(rho: float) -> float:
    """Returns the WAF if a random segment is collected, which is (1 + ρ)/ρ.

    >>> waf_random(0.25)
    5.0
    """
    return _native.waf_random(rho)


def waf_fifo_two_classes(rho: float, hot_writes: float, hot_pages: float) -> float:
    """Returns the WAF if the oldest segment is collected, and the share ``hot_writes`` of the writes goes to
    the share ``hot_pages`` of the pages (Desnoyers, 2014).

    >>> waf_fifo_two_classes(0.0737, 0.9, 0.1) > waf_fifo(0.0737)
    True
    """
    return _native.waf_fifo_two_classes(rho, hot_writes, hot_pages)


class Lifetimes:
    """The distribution of page lifetimes. A lifetime is the number of page writes between two writes of the same
    page.

    :param bucket: the width of a bucket in page writes.
    :param counts: the number of lifetimes in each bucket.
    :param longer: for each bucket, the number of lifetimes that are only known to be longer; as long as
        ``counts``, or empty.
    :param beyond: the number of lifetimes beyond all buckets.
    """

    def __init__(self, bucket: int, counts: Sequence[int], longer: Sequence[int] = (), beyond: int = 0) -> None:
        _within(2**32 - 1, bucket=bucket)
        for name, numbers in (("counts", counts), ("longer", longer), ("beyond", (beyond,))):
            for number in numbers:
                _within(2**64 - 1, **{name: number})
        self._lifetimes = _native.Lifetimes(bucket, list(counts), list(longer), beyond)

    @property
    def range(self) -> float:
        """The longest lifetime, in page writes, that is distinguished from infinity."""
        return self._lifetimes.range

    def survival(self, time: float) -> float:
        """Returns S(t), the share of written pages that are still valid after t = ``time`` more page
        writes."""
        _real(time=time)
        return self._lifetimes.survival(time)

    def valid_among_last(self, time: float) -> float:
        """Returns the number of valid pages among the last ``time`` page writes, which is the integral of
        S."""
        _real(time=time)
        return self._lifetimes.valid_among_last(time)


class Prediction(NamedTuple):
    """The prediction of the MiDAS model for some groups of segments.

    MiDAS writes hot pages to the group HOT, and all other pages to a chain of groups G1 … GN."""

    #: The write amplification.
    waf: float
    #: The share of valid pages at collection, for each of G1 … GN.
    valid_shares: List[float]
    #: The share of host writes that goes to HOT, and the share of HOT's pages that are valid at collection.
    hot: Tuple[float, float]


class Groups(NamedTuple):
    """Sizes of groups in segments, with the prediction for them."""

    #: The size of HOT; 0 without it.
    hot: int
    #: The sizes of G1 … G(N−1). GN has the remaining segments.
    sized: List[int]
    #: The prediction for these sizes.
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
    """Returns the prediction of the MiDAS model (FAST 2024, sections 3.3 and 3.4) for groups of these sizes.

    :param sized: the sizes of G1 … G(N−1) in segments.
    :param hot: the size of HOT in segments.
    :param segments: the number of segments of all groups.
    :param segment_pages: the number of pages per segment.
    :param valid_pages: the number of valid pages.
    :param greedy: whether GN is collected greedily; otherwise first in, first out.
    :param hot_class: pages with lifetimes below this share of GN's mean make its hot class.
    :returns: None if the groups do not fit, or if the lifetimes cover too short a time.
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
    """Returns the sizes of groups with the lowest predicted write amplification (section 3.5 of the MiDAS
    paper).

    :param groups: the maximum number of groups without HOT. The other parameters are those of :func:`midas_predict`.
    :returns: None if the model has no solution.
    """
    # Limit the number of segments, because the search tries each number for each group.
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
