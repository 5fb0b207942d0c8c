"""Shows the progress of runs as a line in a terminal or a bar in a notebook."""

from __future__ import annotations

import sys
import time
from types import TracebackType
from typing import Any, Callable, NamedTuple, Optional, Tuple, Type, Union

from .fields import explain


class Progress(NamedTuple):
    """The progress of runs."""

    #: The number of finished requests.
    done: int
    #: The number of requests in all; 0 if it is unknown.
    total: int
    #: The number of finished runs.
    runs_done: int
    #: The number of runs in all.
    runs: int
    #: The current activity besides requests: its name, the finished part, and the total (0 if it is unknown).
    step: Optional[Tuple[str, int, int]]


#: How progress is shown. True shows a bar in a terminal or a notebook, False shows nothing. A function is called
#: ten times a second; an exception in it ends the runs.
Watch = Union[bool, Callable[[Progress], object]]


def in_words(now: Progress, seconds: float) -> str:
    """Returns the progress as one line."""
    if now.step is not None and now.done == 0:
        what, done, total = now.step
        share = f" {100 * done // total} %" if total else ""
        return f"{what}{share}, {seconds:.0f} s"
    share = f"{100 * min(now.done, now.total) // now.total} %, " if now.total else ""
    runs = f"{now.runs_done} of {now.runs} runs, " if now.runs > 1 else ""
    rate = f"{now.done / seconds:,.0f} requests/s, " if seconds > 0.5 and now.done else ""
    return f"{share}{runs}{rate}{seconds:.0f} s"


class Terminal:
    """A line on standard error that is updated, and removed at the end."""

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
        # Names of drives and files may contain any characters, so the text is escaped.
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
    """Shows the progress of the work inside ``with``."""

    #: The number of seconds after which a bar is shown, so that short work shows none.
    AFTER_S = 0.5

    def __init__(self, watch: Watch) -> None:
        self.watch = watch
        self.began = time.monotonic()
        self.shown: Union[Terminal, Notebook, None] = None
        is_watched = watch is True and (_is_notebook() or sys.stderr.isatty())
        #: The function that the native module calls; None if no progress is shown.
        self.listener: Optional[Callable[..., None]] = self.tell if is_watched or callable(watch) else None

    def tell(self, *now: Any) -> None:
        """Shows the progress, or passes it to the user's function."""
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
