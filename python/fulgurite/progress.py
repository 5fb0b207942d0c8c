"""How far runs have come, where somebody looks on: a line in a terminal, a bar in a notebook."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Callable, NamedTuple, Optional, Tuple, Type, Union

from .fields import explain


class Progress(NamedTuple):
    """How far runs have come."""

    #: Requests that were performed.
    done: int
    #: Requests to perform, as far as is known; 0 where it is not.
    total: int
    #: Runs that have ended.
    runs_done: int
    #: Runs in all.
    runs: int
    #: What is done beside requests, with what is done of it and what there is to do (0 where that is not known).
    step: Optional[Tuple[str, int, int]]


#: What is told of the progress: True for a bar where somebody looks on (a terminal or a notebook), False for nothing, or a
#: function that is called ten times a second. An exception that it raises ends the runs.
Watch = Union[bool, Callable[[Progress], object]]


def in_words(now: Progress, seconds: float) -> str:
    """The progress in a line."""
    if now.step is not None and now.done == 0:
        what, done, total = now.step
        share = f" {100 * done // total} %" if total else ""
        return f"{what}{share}, {seconds:.0f} s"
    share = f"{100 * min(now.done, now.total) // now.total} %, " if now.total else ""
    runs = f"{now.runs_done} of {now.runs} runs, " if now.runs > 1 else ""
    rate = f"{now.done / seconds:,.0f} requests/s, " if seconds > 0.5 and now.done else ""
    return f"{share}{runs}{rate}{seconds:.0f} s"


class Terminal:
    """A line on standard error, drawn again and again, and removed at the end."""

    def __init__(self) -> None:
        self.width = 0

    def show(self, share: Optional[float], text: str) -> None:
        """Draws the line."""
        bar = "" if share is None else "[" + ("=" * int(24 * share)).ljust(24) + "] "
        line = (bar + text)[:100]
        sys.stderr.write("\r" + line.ljust(self.width))
        sys.stderr.flush()
        self.width = len(line)

    def close(self) -> None:
        """Removes the line."""
        sys.stderr.write("\r" + " " * self.width + "\r")
        sys.stderr.flush()


class Notebook:
    """A bar below the cell, removed at the end."""

    def __init__(self) -> None:
        from IPython.display import display

        self.shown = display(self._html(None, ""), display_id=True)

    def _html(self, share: Optional[float], text: str) -> Any:
        from IPython.display import HTML

        value = "" if share is None else f' value="{share:.3f}"'
        # Nothing in the text is anybody's own markup: names of drives and files may hold anything.
        text = text.replace("&", "&amp;").replace("<", "&lt;")
        return HTML(f"<progress{value}></progress> {text}")

    def show(self, share: Optional[float], text: str) -> None:
        """Draws the bar."""
        if self.shown is not None:
            self.shown.update(self._html(share, text))

    def close(self) -> None:
        """Removes the bar."""
        from IPython.display import HTML

        if self.shown is not None:
            self.shown.update(HTML(""))


def _is_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


class Watching:
    """Shows the progress of what is done inside ``with``."""

    #: What is over sooner shows no bar.
    AFTER_S = 0.5

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.began = time.monotonic()
        self.shown: Union[Terminal, Notebook, None] = None
        is_watched = watch is True and (_is_notebook() or sys.stderr.isatty())
        #: What the native module calls; None where nobody looks on.
        self.listener: Optional[Callable[..., None]] = self.tell if is_watched or callable(watch) else None

    def tell(self, *now: Any) -> None:
        """Passes on how far the runs have come."""
        progress = Progress(*now)
        if callable(self.watch):
            self.watch(progress)
            return
        seconds = time.monotonic() - self.began
        if seconds < self.AFTER_S:
            return
        if self.shown is None:
            self.shown = Notebook() if _is_notebook() else Terminal()
        share = min(1.0, progress.done / progress.total) if progress.total else None
        self.shown.show(share, in_words(progress, seconds))

    def __enter__(self) -> Watching:
        return self

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        traceback: Optional[TracebackType],
    ) -> None:
        if self.shown is not None:
            self.shown.close()


explain(globals())

__all__ = ["Progress", "Watch"]
