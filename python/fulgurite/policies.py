"""Policies of your own.

Write a class that derives from :class:`Replacement`, :class:`Placement` or :class:`Victim`, and give the class wherever a
description takes the name of a policy::

    class LRU2(fulgurite.Replacement):
        '''The frame whose last access but one is longest ago.'''

        def __init__(self, frames):
            self.now, self.used = 0, {}

        def insert(self, frame, page, write):
            self.used[frame] = (-1, self.tick())

        def access(self, frame, write):
            self.used[frame] = (self.used[frame][1], self.tick())

        def remove(self, frame):
            del self.used[frame]

        def order(self):
            return sorted(self.used, key=self.used.get)

        def tick(self):
            self.now += 1
            return self.now

    fulgurite.sweep("pool", workload="postgres-pgbench", device="none", replacement=["lru", LRU2])

Each run makes an object of its own. What it answers is checked: an answer that cannot be ends the run with
:class:`fulgurite.PolicyError`, and an exception that a method raises comes out of :func:`fulgurite.run` as it is. Such a policy
is some thousand times slower than one in Rust, because each question takes the interpreter's lock.

Tables and run ids call it by :attr:`name`. The run id has a hash of the class's compiled methods and of its plain attributes too,
so a changed policy has another id, wherever it is defined. What the class uses from elsewhere is not in the hash. Another version of
Python compiles to something else, and gives another id.
"""

from __future__ import annotations

import atexit
import hashlib
import inspect
import os
import time
import types
from abc import ABC, abstractmethod
from typing import ClassVar, FrozenSet, Iterable, Iterator, List, NamedTuple, Optional, Sequence, Type, Union

from . import _native
from .errors import PolicyError, RequestError
from .fields import explain


class Replacement(ABC):
    """Which frame leaves the pool.

    The pool tells the policy what happens to frames, which are numbered from 0 on. The policy gives the order in which the
    frames that hold pages would leave now.

    *The order law*: when frames leave, they leave in the order that :meth:`order` gave, as long as nothing else happens.
    Write-back policies such as ``ace`` and ``raw`` rely on it. It is checked before the first run, over some hundred random
    steps.

    :param frames: how many frames the pool has.
    """

    #: What tables call the policy; by default the name of the class.
    name: ClassVar[Optional[str]] = None

    def __init__(self, frames: int) -> None:
        del frames

    @abstractmethod
    def insert(self, frame: int, page: int, write: bool) -> None:
        """``frame`` now holds ``page``, which was asked for; to be changed, if ``write``."""

    def insert_prefetched(self, frame: int, page: int) -> None:
        """``frame`` now holds ``page``, which nobody has asked for yet. By default the same as :meth:`insert`."""
        self.insert(frame, page, False)

    @abstractmethod
    def access(self, frame: int, write: bool) -> None:
        """The page in ``frame`` was asked for again; to be changed, if ``write``."""

    @abstractmethod
    def remove(self, frame: int) -> None:
        """``frame`` no longer holds a page: it left, or the page is gone for another reason."""

    @abstractmethod
    def order(self) -> Iterable[int]:
        """Every frame that holds a page, once, in the order in which they would leave.

        It changes nothing. A generator is welcome: of most orders only the beginning is looked at.
        """

    def cleaned(self, frame: int) -> None:
        """The page in ``frame`` was written back and stays."""

    def evict(self, pinned: FrozenSet[int]) -> int:
        """Takes a frame out of the order and returns it: the first that is not in ``pinned``.

        Override it only where an eviction changes more than the order's first frame. The default takes the first frame of
        :meth:`order` and calls :meth:`remove`. What the override returns is compared with the order.
        """
        frame = next(frame for frame in self.order() if frame not in pinned)
        self.remove(frame)
        return frame


class Drive(NamedTuple):
    """The drive that a placement policy is made for."""

    #: Pages that the host sees.
    logical_pages: int
    #: Segments in all.
    segments: int
    #: Pages in a segment.
    segment_pages: int


class Write(NamedTuple):
    """A page that is about to be written."""

    #: The logical page.
    page: int
    #: Whether garbage collection copies it, rather than the host writing it.
    copied: bool
    #: The stream that the host names; 0 where it names none, and for copies.
    hint: int
    #: The time: pages that the host has written since the drive was new.
    now: int
    #: The stream of the segment that holds the page now; None for a page that is new.
    stream: Optional[int]
    #: When that segment was opened, in page writes of the host; None for a page that is new.
    opened_at: Optional[int]


class Placement(ABC):
    """Which stream a page is written to. Pages of one stream share segments, so they should die together.

    :param drive: the drive that it is made for.
    """

    #: What tables call the policy; by default the name of the class.
    name: ClassVar[Optional[str]] = None
    #: Streams, which are numbered from 0 on; at most 256.
    streams: ClassVar[int] = 2

    def __init__(self, drive: Drive) -> None:
        del drive

    @abstractmethod
    def place(self, write: Write) -> int:
        """The stream for this page. It is asked as often as need be, so it must change nothing."""

    def written(self, write: Write, stream: int) -> None:
        """The page was written to ``stream``; ``write`` is what was known before."""

    def trimmed(self, page: int) -> None:
        """The page was trimmed: its content is no longer needed."""


class Segment(NamedTuple):
    """A full segment, which may be collected."""

    #: Its number.
    number: int
    #: Valid pages in it, which would have to be copied.
    valid_pages: int
    #: Pages in all.
    pages: int
    #: When its first page was written, in page writes of the host.
    opened_at: int
    #: When its last page was written, by the same clock.
    sealed_at: int
    #: How often it was erased.
    erases: int
    #: The stream that wrote it.
    stream: int


class Victim(ABC):
    """Which segment is collected next.

    :param segments: how many segments there are.
    :param segment_pages: pages in a segment.
    """

    #: What tables call the policy; by default the name of the class.
    name: ClassVar[Optional[str]] = None

    def __init__(self, segments: int, segment_pages: int) -> None:
        del segments, segment_pages

    @abstractmethod
    def pick(self, segments: Sequence[Segment], now: int) -> int:
        """The number of one of ``segments``, which stand in the order in which they became full.

        ``now`` is the time in page writes of the host.
        """


Policy = Union[Type[Replacement], Type[Placement], Type[Victim]]

#: By kind the class that a policy derives from.
KINDS = {"replacement": Replacement, "placement": Placement, "victim": Victim}


def is_policy(value: object) -> bool:
    """Whether ``value`` is the class of a policy."""
    return isinstance(value, type) and issubclass(value, tuple(KINDS.values()))


def name_of(policy: type) -> str:
    """What tables call the policy."""
    name: Optional[str] = getattr(policy, "name", None)
    if name is not None and not isinstance(name, str):
        raise PolicyError(f"{policy.__name__}: name is {name!r}, of type {type(name).__name__}; accepted: text, or None for the name of the class")
    return name if name is not None else policy.__name__


def text_of(policy: type) -> str:
    """What run ids call the policy: its name, and a hash of its compiled methods and its plain attributes."""
    parts: List[str] = []
    for cls in policy.__mro__:
        if cls in KINDS.values():
            break
        parts.extend(_parts(cls))
    return f"{name_of(policy)}@{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"


def _parts(cls: type) -> Iterator[str]:
    """What a class consists of. Where it stands is no part: module, lines, and whatever else Python notes beside it."""
    for key, member in sorted(vars(cls).items()):
        functions = list(_functions(member))
        # Annotations are computed by functions too, in some versions of Python.
        if functions and not key.startswith("__annotate"):
            yield f"{key}({','.join(map(_function, functions))})"
        elif key.startswith("__") and key.endswith("__"):
            continue
        elif isinstance(member, type) and member.__qualname__.startswith(f"{cls.__qualname__}."):
            yield f"{key}{{{','.join(_parts(member))}}}"
        elif _is_plain(member):
            yield f"{key}={_constant(member)}"


def _functions(member: object) -> Iterator[types.FunctionType]:
    """The functions that a member of a class is made of."""
    if isinstance(member, types.FunctionType):
        yield member
    for name in ("__func__", "__wrapped__", "func", "fget", "fset", "fdel"):
        # Without asking a class or an object of somebody else's, which may answer to any name.
        inner = None if isinstance(member, type) else inspect.getattr_static(member, name, None)
        if isinstance(inner, (types.MemberDescriptorType, types.GetSetDescriptorType)):
            inner = getattr(member, name)
        if inner is not None and inner is not member:
            yield from _functions(inner)


def _function(function: types.FunctionType) -> str:
    cells = []
    for cell in function.__closure__ or ():
        try:
            cells.append(cell.cell_contents)
        except ValueError:
            # Not bound yet.
            continue
    usual = [function.__defaults__, sorted((function.__kwdefaults__ or {}).items()), cells]
    return f"{_code(function.__code__)}{_constant(tuple(map(tuple, (given or () for given in usual))))}"


def _code(code: types.CodeType) -> str:
    """What a code object does, without where it stands."""
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    takes = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    caught = getattr(code, "co_exceptiontable", b"")
    return f"{code.co_code!r}{caught!r}{names}{takes}{_constant(code.co_consts)}"


def _is_plain(value: object) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_plain, value))
    return isinstance(value, (int, float, complex, str, bytes, bool, type(None)))


def _constant(value: object) -> str:
    """A constant as text, the same in each process: sets have no order of their own, and other objects an address."""
    if isinstance(value, types.CodeType):
        return _code(value)
    if isinstance(value, tuple):
        return f"({','.join(map(_constant, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_constant, value)))}}}"
    return repr(value) if _is_plain(value) or value is Ellipsis else type(value).__name__


#: Makers of the policies that were used last, so that each class is checked once. A maker keeps its class alive, and a notebook defines
#: a class again whenever its cell is run.
_MAKERS: "dict[type, tuple[str, _native.Maker]]" = {}
_MOST_MAKERS = 32


def maker_of(kind: str, policy: type, text: Optional[str] = None) -> _native.Maker:
    """The maker of a policy for the setting ``kind``; ``text`` is what run ids call it, where another process has said so."""
    if not issubclass(policy, KINDS[kind]):
        base = KINDS[kind].__name__
        raise RequestError(f"--{kind} {policy.__name__} is no {kind} policy; accepted: a name, or a class that derives from fulgurite.{base}")
    missing = sorted(getattr(policy, "__abstractmethods__", ()))
    if missing:
        raise RequestError(f"--{kind} {policy.__name__} lacks {', '.join(missing)}; accepted: a class that has every method of fulgurite.{KINDS[kind].__name__}")
    streams = getattr(policy, "streams", 1) if kind == "placement" else 1
    if not isinstance(streams, int) or isinstance(streams, bool) or not 1 <= streams <= 256:
        raise RequestError(f"--placement {policy.__name__} has streams={streams!r}; accepted: 1 to 256")
    text = text_of(policy) if text is None else text
    known = _MAKERS.pop(policy, None)
    if known is None or known[0] != text:
        known = (text, _native.Maker(kind, name_of(policy), text, policy, streams))
    _MAKERS[policy] = known
    for oldest in list(_MAKERS)[:-_MOST_MAKERS]:
        _MAKERS.pop(oldest, None)
    return known[1]


def check_policy(policy: Policy) -> None:
    """Raises what is wrong with a policy, as far as that can be told without a run.

    A replacement policy is used at random for some hundred steps, and the order that it gives is compared with the order in
    which its frames leave. :func:`fulgurite.run` does the same before the first run.
    """
    for kind, base in KINDS.items():
        if isinstance(policy, type) and issubclass(policy, base):
            maker_of(kind, policy).check()
            return
    raise RequestError(f"{policy!r} is no policy; accepted: a class that derives from Replacement, Placement or Victim")


#: How long the end of the interpreter waits for a policy.
_LEAVES_WITHIN_S = 5.0


def _leave() -> None:
    """Awaits the threads that are inside a policy: one that goes on at the end of the interpreter would abort the process."""
    until = time.monotonic() + _LEAVES_WITHIN_S
    # One that waits for a lock, or for something outside, does not hear of it. It does not go on either, as a rule.
    while _native.leave_policies() and time.monotonic() < until:
        time.sleep(0.01)


atexit.register(_leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_native.forget_policies)


explain(globals())

__all__ = ["Drive", "Placement", "Replacement", "Segment", "Victim", "Write", "check_policy"]
