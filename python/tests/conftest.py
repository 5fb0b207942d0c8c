"""Makes the tests use the installed package, not the source folder beside them."""

import pathlib
import signal

import fulgurite

_FOLDER = pathlib.Path(__file__).resolve().parent.parent
assert (
    _FOLDER not in pathlib.Path(fulgurite.__file__).resolve().parents
), f"{fulgurite.__file__} is not the installed package; install the wheel and run the tests from elsewhere"

# A command that a shell starts in the background ignores interrupts, and Python does not change that. But the tests
# send interrupts to themselves and to processes that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
