"""Tests the closed forms and the model of MiDAS."""

import doctest

import pytest

import fulgurite
from fulgurite import description, models


def test_the_examples_in_the_documentation_hold():
    for module in (models, description):
        failed, tried = doctest.testmod(module)
        assert tried and not failed


def test_the_closed_forms_give_the_published_table():
    for rho, fifo, greedy in [(0.07, 7.8172, 7.7051), (0.15, 4.0160, 3.9875), (0.28, 2.4814, 2.4711)]:
        assert fulgurite.waf_fifo(rho) == pytest.approx(fifo, abs=1e-4 * fifo)
        assert fulgurite.waf_greedy(rho, 512) == pytest.approx(greedy, abs=1e-4 * greedy)
        assert fulgurite.waf_fifo_two_classes(rho, 0.3, 0.3) == pytest.approx(fifo, rel=1e-3)


def test_a_closed_form_and_a_run_agree():
    row = fulgurite.run(
        "gc", workload="mixed-uniform", logical="14MiB", physical="16MiB", segment="64KiB", victim="fifo", ops="300K"
    )[0]
    assert row["waf_steady"] == pytest.approx(fulgurite.waf_fifo(row["spare_effective"]), rel=0.02)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: fulgurite.waf_fifo(0),
        lambda: fulgurite.waf_fifo(float("nan")),
        lambda: fulgurite.waf_greedy(0.1, 1),
        lambda: fulgurite.waf_fifo_two_classes(0.1, 1.5, 0.1),
        lambda: fulgurite.Lifetimes(0, [1]),
        lambda: fulgurite.Lifetimes(10, [0]),
        lambda: fulgurite.Lifetimes(10, [1, 2], [1]),
        lambda: fulgurite.Lifetimes(10, [2**63, 2**63]),
        lambda: fulgurite.Lifetimes(10, [2**64]),
        lambda: fulgurite.Lifetimes(-1, [1]),
        lambda: fulgurite.Lifetimes(10, [0.5]),
        lambda: fulgurite.midas_predict(lifetimes(), [-1], segments=600, segment_pages=10, valid_pages=5e3),
        lambda: fulgurite.midas_groups(lifetimes(), segments=2**32, segment_pages=10, valid_pages=5e3),
        lambda: fulgurite.midas_groups(lifetimes(), segments=600, segment_pages=0, valid_pages=5e3),
        lambda: fulgurite.midas_groups(lifetimes(), segments=600, segment_pages=10, valid_pages=float("nan")),
        lambda: fulgurite.midas_groups(lifetimes(), segments=600, segment_pages=10, valid_pages=5e3, groups=0),
        lambda: fulgurite.midas_groups(
            lifetimes(), segments=600, segment_pages=10, valid_pages=5e3, hot_class=float("nan")
        ),
        lambda: fulgurite.midas_predict(lifetimes(), [10], segments=600, segment_pages=0, valid_pages=5e3),
        lambda: fulgurite.midas_predict(lifetimes(), [10], segments=600, segment_pages=10, valid_pages=float("inf")),
        lambda: fulgurite.midas_predict(
            lifetimes(), [10], segments=600, segment_pages=10, valid_pages=5e3, hot_class=-1.0
        ),
        lambda: lifetimes().survival(float("nan")),
        lambda: lifetimes().valid_among_last(float("nan")),
    ],
)
def test_arguments_without_a_solution_are_refused(wrong):
    with pytest.raises(fulgurite.RequestError, match="accepted: "):
        wrong()


def lifetimes():
    """Half of the writes live for 1,000 page writes, half for 9,000."""
    counts = [0] * 1000
    counts[100] = counts[900] = 1000
    return fulgurite.Lifetimes(10, counts)


def test_midas_predicts_and_selects():
    known = lifetimes()
    assert known.survival(5_000) == pytest.approx(0.5) and known.range == 10_000
    drive = {"segments": 600, "segment_pages": 10, "valid_pages": 5_000.0, "greedy": False}
    # G1 keeps the short-lived pages until they are overwritten, and passes the other half on to G2.
    prediction = fulgurite.midas_predict(known, [110], **drive)
    assert prediction.valid_shares[0] == pytest.approx(0.5, abs=0.02)
    assert fulgurite.midas_predict(known, [590], **drive) is None
    chosen = fulgurite.midas_groups(known, **drive)
    assert chosen.prediction.waf <= prediction.waf
    assert fulgurite.midas_predict(known, chosen.sized, hot=chosen.hot, **drive).waf == pytest.approx(
        chosen.prediction.waf
    )
