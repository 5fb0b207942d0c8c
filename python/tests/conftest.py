"""The tests run against the installed package, never against the folder beside them."""

import pathlib

import fulgurite

_FOLDER = pathlib.Path(__file__).resolve().parent.parent
assert _FOLDER not in pathlib.Path(fulgurite.__file__).resolve().parents, (
    f"{fulgurite.__file__} is not the installed package; install the wheel and run the tests from elsewhere"
)
