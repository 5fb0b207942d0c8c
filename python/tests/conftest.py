"""The tests run against the installed package, never against the folder beside them."""

import pathlib
import signal

import fulgurite

_FOLDER = pathlib.Path(__file__).resolve().parent.parent
assert _FOLDER not in pathlib.Path(fulgurite.__file__).resolve().parents, (
    f"{fulgurite.__file__} is not the installed package; install the wheel and run the tests from elsewhere"
)

# A shell that starts a command in the background lets it ignore interrupts, and Python leaves that as it is. Tests send
# interrupts to themselves and to processes that they start.
signal.signal(signal.SIGINT, signal.default_int_handler)
