"""Describes and checks policies of your own.

Write a class that derives from :class:`Replacement`, :class:`Placement` or :class:`Victim`, and give the class
wherever a description takes the name of a policy::

    class LRU2(fulgurite.Replacement):
        '''Evicts the frame whose second-to-last access is the oldest.'''

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

Each run creates its own object. Its answers are checked: an invalid answer ends the run with
:class:`fulgurite.PolicyError`. :func:`fulgurite.run` raises an exception of a method unchanged. Such a policy is
about a thousand times slower than one in Rust, because each call takes the GIL (the interpreter's lock).

Tables and run ids show the attribute ``name`` of the class. The run id also covers a hash of the class's
compiled methods and plain attributes, so a changed policy gives another id. The hash does not cover functions
and data outside the class. Another version of Python compiles the methods differently and gives another id.
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
    """A replacement policy: decides which frame is evicted.

    The pool notifies the policy of events of its frames, which are numbered from 0. The policy returns the order
    in which the frames with pages would be evicted now.

    *The order law*: without other events, frames are evicted in the order that :meth:`order` returned. Write-back
    policies such as ``ace`` and ``raw`` rely on it. The law is checked over some hundred random steps before the
    first run.

    :param frames: the number of frames of the pool.
    """

    #: The name of the policy in tables; by default the name of the class.
    name: ClassVar[Optional[str]] = None

    def __init__(self, frames: int) -> None:
        del frames

    @abstractmethod
    def insert(self, frame: int, page: int, write: bool) -> None:
        """``page`` was read into ``frame`` by a request, which will modify the page if ``write``."""

    def insert_prefetched(self, frame: int, page: int) -> None:
        """``page`` was prefetched into ``frame``. By default the same as :meth:`insert`."""
        self.insert(frame, page, False)

    @abstractmethod
    def access(self, frame: int, write: bool) -> None:
        """The page in ``frame`` was requested again. The request will modify the page if ``write``."""

    @abstractmethod
    def remove(self, frame: int) -> None:
        """``frame`` has no page any more: the page was evicted, or removed for another reason."""

    @abstractmethod
    def order(self) -> Iterable[int]:
        """All frames with pages, once each, in the order in which they would be evicted.

        This must not change the policy. A generator is efficient, because usually only the beginning of the order
        is read.
        """

    def cleaned(self, frame: int) -> None:
        """The page in ``frame`` was written back and is clean now."""

    def evict(self, pinned: FrozenSet[int]) -> int:
        """Removes the first frame of the order that is not in ``pinned``, and returns it.

        The default finds the frame through :meth:`order` and calls :meth:`remove`. Override it only if an
        eviction changes more of the policy's state. The returned frame is compared with the order.
        """
        frame = next(frame for frame in self.order() if frame not in pinned)
        self.remove(frame)
        return frame


class Drive(NamedTuple):
    """The drive for which a placement policy is created."""

    #: The number of logical pages.
    logical_pages: int
    #: The number of segments.
    segments: int
    #: The number of pages per segment.
    segment_pages: int


class Write(NamedTuple):
    """The context of a page write."""

    #: The logical page.
    page: int
    #: Whether garbage collection copies the page; otherwise the host writes it.
    copied: bool
    #: The stream that the host requests; 0 without a request, and for copies.
    hint: int
    #: The time: the number of pages that the host has written so far.
    now: int
    #: The stream of the segment that contains the page now; None for a new page.
    stream: Optional[int]
    #: The time at which that segment was opened, in host page writes; None for a new page.
    opened_at: Optional[int]


class Placement(ABC):
    """A placement policy: decides to which stream a page is written.

    Pages of one stream share segments, so they should become invalid at about the same time.

    :param drive: the drive.
    """

    #: The name of the policy in tables; by default the name of the class.
    name: ClassVar[Optional[str]] = None
    #: The number of streams, at most 256. They are numbered from 0.
    streams: ClassVar[int] = 2

    def __init__(self, drive: Drive) -> None:
        del drive

    @abstractmethod
    def place(self, write: Write) -> int:
        """The stream for this page. It may be called several times for a write, so it must not change the policy."""

    def written(self, write: Write, stream: int) -> None:
        """The page was written to ``stream``. ``write`` is the context before the write."""

    def trimmed(self, page: int) -> None:
        """The page was trimmed."""


class Segment(NamedTuple):
    """A sealed segment, which may be collected."""

    #: The number of the segment.
    number: int
    #: The number of valid pages, which collection would copy.
    valid_pages: int
    #: The number of pages of the segment.
    pages: int
    #: The time at which the first page of the segment was written, in host page writes.
    opened_at: int
    #: The time at which the last page of the segment was written, in host page writes.
    sealed_at: int
    #: The number of erases of the segment.
    erases: int
    #: The stream whose pages the segment contains.
    stream: int


class Victim(ABC):
    """A victim policy: decides which segment is collected next.

    :param segments: the number of segments.
    :param segment_pages: the number of pages per segment.
    """

    #: The name of the policy in tables; by default the name of the class.
    name: ClassVar[Optional[str]] = None

    def __init__(self, segments: int, segment_pages: int) -> None:
        del segments, segment_pages

    @abstractmethod
    def pick(self, segments: Sequence[Segment], now: int) -> int:
        """The number of one of ``segments``, which are in the order in which they became full.

        ``now`` is the time in host page writes.
        """


Policy = Union[Type[Replacement], Type[Placement], Type[Victim]]

#: The base class for each kind of policy.
KINDS = {"replacement": Replacement, "placement": Placement, "victim": Victim}


def is_policy(value: object) -> bool:
    """Whether ``value`` is the class of a policy."""
    return isinstance(value, type) and issubclass(value, tuple(KINDS.values()))


def name_of(policy: type) -> str:
    """Returns the name of the policy in tables."""
    name: Optional[str] = getattr(policy, "name", None)
    if name is not None and not isinstance(name, str):
        raise PolicyError(
            f"{policy.__name__}: name is {name!r}, of type {type(name).__name__}; accepted: text, or None for "
            "the name of the class"
        )
    return name if name is not None else policy.__name__


def text_of(policy: type) -> str:
    """Returns the text of the policy in run ids, which is its name with a hash of its compiled methods and
    plain attributes."""
    parts: List[str] = []
    for cls in policy.__mro__:
        if cls in KINDS.values():
            break
        parts.extend(_parts(cls))
    return f"{name_of(policy)}@{hashlib.sha256(chr(0).join(parts).encode()).hexdigest()[:12]}"


def _parts(cls: type) -> Iterator[str]:
    """Yields the parts of a class to hash. Its location (module, lines) is not one of them."""
    for key, member in sorted(vars(cls).items()):
        functions = list(_functions(member))
        # Leave out the functions that compute annotations, because only some versions of Python have them.
        if functions and not key.startswith("__annotate"):
            yield f"{key}({','.join(map(_function, functions))})"
        elif key.startswith("__") and key.endswith("__"):
            continue
        elif isinstance(member, type) and member.__qualname__.startswith(f"{cls.__qualname__}."):
            yield f"{key}{{{','.join(_parts(member))}}}"
        elif _is_plain(member):
            yield f"{key}={_constant(member)}"


def _functions(member: object) -> Iterator[types.FunctionType]:
    """Yields the functions in a member of a class."""
    if isinstance(member, types.FunctionType):
        yield member
    for name in ("__func__", "__wrapped__", "func", "fget", "fset", "fdel"):
        # Look the attribute up statically, because a foreign object may compute any attribute dynamically.
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
            # Skip a variable that is not bound yet.
            continue
    usual = [function.__defaults__, sorted((function.__kwdefaults__ or {}).items()), cells]
    return f"{_code(function.__code__)}{_constant(tuple(map(tuple, (given or () for given in usual))))}"


def _code(code: types.CodeType) -> str:
    """Returns the content of a code object as text, without its location."""
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    takes = (code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    caught = getattr(code, "co_exceptiontable", b"")
    return f"{code.co_code!r}{caught!r}{names}{takes}{_constant(code.co_consts)}"


def _is_plain(value: object) -> bool:
    if isinstance(value, (tuple, frozenset)):
        return all(map(_is_plain, value))
    return isinstance(value, (int, float, complex, str, bytes, bool, type(None)))


def _constant(value: object) -> str:
    """Returns a constant as text that is equal in every process. Sets are sorted, and addresses of objects
    are left out."""
    if isinstance(value, types.CodeType):
        return _code(value)
    if isinstance(value, tuple):
        return f"({','.join(map(_constant, value))})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(map(_constant, value)))}}}"
    return repr(value) if _is_plain(value) or value is Ellipsis else type(value).__name__


#: Makers of the policies that were used last, so that each class is checked once. The number is limited, because
#: a maker keeps its class alive, and a notebook defines a class again whenever its cell is run.
_MAKERS: "dict[type, tuple[str, _native.Maker]]" = {}
_MOST_MAKERS = 32


def maker_of(kind: str, policy: type, text: Optional[str] = None) -> _native.Maker:
    """Returns the maker of a policy for the setting ``kind``. A maker creates a new policy object for each
    run. ``text`` is the policy's text in run ids, if another process computed it."""
    if not issubclass(policy, KINDS[kind]):
        base = KINDS[kind].__name__
        raise RequestError(
            f"--{kind} {policy.__name__} is not a {kind} policy; accepted: a name, or a class that derives from "
            f"fulgurite.{base}"
        )
    missing = sorted(getattr(policy, "__abstractmethods__", ()))
    if missing:
        raise RequestError(
            f"--{kind} {policy.__name__} lacks {', '.join(missing)}; accepted: a class with all methods of "
            f"fulgurite.{KINDS[kind].__name__}"
        )
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
    """Raises an exception if a policy is invalid, as far as that can be detected without a run.

    A replacement policy is used for some hundred random steps, and the order that it returns is compared with the
    order in which its frames are evicted. :func:`fulgurite.run` does the same before the first run.
    """
    for kind, base in KINDS.items():
        if isinstance(policy, type) and issubclass(policy, base):
            maker_of(kind, policy).check()
            return
    raise RequestError(
        f"{policy!r} is not a policy; accepted: a class that derives from Replacement, Placement or Victim"
    )


#: The number of seconds for which the interpreter's shutdown waits for a policy.
_LEAVES_WITHIN_S = 5.0


def _leave() -> None:
    """Waits for the threads that are inside a policy, because a thread that continues during shutdown would
    abort the process."""
    until = time.monotonic() + _LEAVES_WITHIN_S
    # The wait is limited, because a thread that waits for a lock or for I/O cannot be interrupted. Usually it
    # does not continue either.
    while _native.leave_policies() and time.monotonic() < until:
        time.sleep(0.01)


atexit.register(_leave)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_native.forget_policies)


explain(globals())

__all__ = ["Drive", "Placement", "Replacement", "Segment", "Victim", "Write", "check_policy"]
