"""Composition adds what it says it adds, and a filter never lets more through than its limit."""

import math
import os
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
from dp_accounting.rdp import RdpAccountant
from hypothesis import given, settings
from hypothesis import strategies as st

from dpbandits.errors import BudgetExhausted, InvalidInput, NotImplied, PrivacyError
from dpbandits.privacy import accounting
from dpbandits.privacy.accounting import Filter, Odometer, compose
from dpbandits.privacy.budgets import (
    ApproxDP,
    Budget,
    GaussianDP,
    NonPrivate,
    PureDP,
    RenyiDP,
    ZeroConcentratedDP,
)

spread = st.floats(-6.0, 3.0).map(lambda x: 10.0**x)
LIMITS: list[Callable[[float], Budget]] = [PureDP, GaussianDP, ZeroConcentratedDP]


def lets_through(guard: Filter, cost: Budget) -> bool:
    try:
        guard.spend(cost)
    except BudgetExhausted:
        return False
    return True


def test_one_kind_adds_up() -> None:
    assert compose([PureDP(0.1)] * 10) == PureDP(1.0)
    assert compose([GaussianDP(3.0), GaussianDP(4.0)]) == GaussianDP(5.0)
    assert compose([ZeroConcentratedDP(0.1)] * 10) == ZeroConcentratedDP(1.0)
    assert compose([RenyiDP(8.0, 0.1)] * 10) == RenyiDP(8.0, 1.0)
    assert compose([ApproxDP(0.1, 0.01)] * 10) == ApproxDP(1.0, 0.1)
    assert compose([GaussianDP(1e-200), GaussianDP(1e200)]) == GaussianDP(1e200)
    assert compose(iter([PureDP(0.7)])) == PureDP(0.7)


def test_kinds_meet_in_the_strongest_that_all_imply() -> None:
    pure, gaussian, zcdp = PureDP(1.0), GaussianDP(2.0), ZeroConcentratedDP(3.0)
    mu = PureDP(1.0).implies(GaussianDP).size
    rho = PureDP(1.0).implies(ZeroConcentratedDP).size
    at = PureDP(1.0).implies(RenyiDP, order=4.0).size
    assert compose([pure, gaussian]) == GaussianDP(math.hypot(mu, 2.0))
    assert compose([zcdp, pure, gaussian]) == ZeroConcentratedDP(math.fsum([3.0, rho, 2.0]))
    mixed = compose([RenyiDP(4.0, 0.5), pure, gaussian, zcdp])
    assert isinstance(mixed, RenyiDP) and mixed.order == 4.0
    assert mixed.divergence == pytest.approx(0.5 + at + 4.0 * 2.0 + 4.0 * 3.0, rel=1e-15)
    assert compose([pure, ApproxDP(1.0, 1e-6)]) == ApproxDP(2.0, 1e-6)
    assert compose([ApproxDP(1.0, 1e-6), gaussian, NonPrivate()]) == NonPrivate()


def test_what_cannot_be_composed_is_refused() -> None:
    for parts in (
        [ApproxDP(1.0, 1e-6), GaussianDP(1.0)],
        [ApproxDP(1.0, 1e-6), ZeroConcentratedDP(1.0)],
        [RenyiDP(2.0, 1.0), RenyiDP(3.0, 1.0)],
        [ApproxDP(1.0, 0.5), ApproxDP(1.0, 0.5)],
    ):
        with pytest.raises(NotImplied):
            compose(parts)
    with pytest.raises(InvalidInput, match="at least one budget"):
        compose([])


def test_gaussian_composition_agrees_with_dp_accounting() -> None:
    accountant = RdpAccountant(orders=[8.0])
    accountant.compose(SelfComposedDpEvent(GaussianDpEvent(noise_multiplier=4.0), 30))
    ours = compose([GaussianDP(0.25)] * 30).implies(RenyiDP, order=8.0)
    assert ours.epsilon_at(1e-6) == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-9)


def test_a_hundred_tenths_fit_one_gaussian_and_no_more() -> None:
    guard = Filter(GaussianDP(1.0))
    for _ in range(100):
        guard.spend(GaussianDP(0.1))
    assert guard.spent is not None and guard.spent.within(guard.limit) == GaussianDP(1.0)
    assert guard.remaining is None
    with pytest.raises(BudgetExhausted, match=r"0\.1-GDP on top of 1-GDP .* limit 1-GDP") as caught:
        guard.spend(GaussianDP(0.1))
    assert caught.value.asked == GaussianDP(0.1) and caught.value.limit == GaussianDP(1.0)
    assert caught.value.spent == guard.spent


@pytest.mark.parametrize("kind", LIMITS)
def test_many_small_costs_neither_drift_nor_vanish(kind: Callable[[float], Budget]) -> None:
    guard, count = Filter(kind(0.7)), 3000
    power = 2 if kind is GaussianDP else 1
    for _ in range(count):
        guard.spend(kind(0.7 / count ** (1 / power)))
    assert guard.spent is not None and guard.spent.size == pytest.approx(0.7, rel=2e-15)
    # Each of these is lost when it is added to the total alone; together they are not.
    tiny = kind(0.7 * 1e-16 ** (1 / power))
    assert not all(lets_through(guard, tiny) for _ in range(25_000))


@given(st.sampled_from(LIMITS), spread, st.lists(st.floats(0.01, 0.6), min_size=1, max_size=8))
@settings(max_examples=200)
def test_a_filter_refuses_without_changing_and_what_remains_can_be_spent(
    kind: Callable[[float], Budget], size: float, shares: list[float]
) -> None:
    guard, let_through = Filter(kind(size)), []
    assert guard.spent is None and guard.remaining == kind(size)
    for share in shares:
        before, left, cost = guard.spent, guard.remaining, kind(size * share)
        if lets_through(guard, cost):
            let_through.append(cost)
            assert left is not None and cost.size <= left.size * (1.0 + 1e-9)
        else:
            assert (guard.spent, guard.remaining) == (before, left)
            assert left is None or cost.size > left.size
    assert guard.spent is not None
    assert guard.spent.size == pytest.approx(compose(let_through).size, rel=1e-14)
    if guard.remaining is not None:
        guard.spend(guard.remaining)
    assert guard.remaining is None and guard.spent.within(guard.limit) == kind(size)
    with pytest.raises(BudgetExhausted):
        guard.spend(kind(size * 0.01))


def test_a_filter_converts_each_cost_to_the_kind_of_its_limit() -> None:
    guard = Filter(ZeroConcentratedDP(1.0))
    guard.spend(GaussianDP(1.0))
    guard.spend(PureDP(0.5))
    assert guard.spent == ZeroConcentratedDP(0.5 + 0.5 * math.tanh(0.25))
    for cost in (ApproxDP(0.1, 1e-9), RenyiDP(2.0, 0.1), NonPrivate()):
        with pytest.raises(NotImplied):
            guard.spend(cost)
    with pytest.raises(NotImplied):
        Filter(PureDP(1.0)).spend(GaussianDP(0.1))
    assert guard.spent == ZeroConcentratedDP(0.5 + 0.5 * math.tanh(0.25))


@pytest.mark.parametrize("limit", [ApproxDP(1.0, 1e-6), RenyiDP(2.0, 1.0), NonPrivate()])
def test_a_filter_needs_a_limit_that_adds_up_adaptively(limit: Budget) -> None:
    with pytest.raises(InvalidInput, match="a filter's limit is"):
        Filter(limit)


def test_an_odometer_reads_every_kind_and_keeps_its_reading_when_it_refuses() -> None:
    meter = Odometer()
    assert meter.spent is None
    meter.spend(PureDP(0.25))
    meter.spend(PureDP(0.25))
    assert meter.spent == PureDP(0.5)
    meter.spend(GaussianDP(3.0))
    meter.spend(GaussianDP(4.0))
    total = compose([PureDP(0.5), GaussianDP(5.0)])
    assert meter.spent == total
    with pytest.raises(NotImplied):
        meter.spend(ApproxDP(1.0, 1e-6))
    assert meter.spent == total
    # Once something was released in the clear, nothing that follows can help or fail.
    for cost in (NonPrivate(), ApproxDP(1.0, 1e-6), GaussianDP(1.0), RenyiDP(2.0, 1.0)):
        meter.spend(cost)
        assert meter.spent == NonPrivate()


@pytest.fixture
def hasty_threads() -> Iterator[None]:
    """Threads that are interrupted as often as may be."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def at_once(spend: Callable[[], object], threads: int = 16) -> None:
    """The same call from many threads that start together."""
    gate = threading.Barrier(threads)

    def wait_and_spend() -> None:
        gate.wait()
        spend()

    started = [threading.Thread(target=wait_and_spend) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()


@pytest.mark.usefixtures("hasty_threads")
def test_threads_at_once_get_no_more_than_the_limit() -> None:
    for _ in range(30):
        guard = Filter(PureDP(1.0))
        through: list[bool] = []
        at_once(lambda g=guard, t=through: t.append(lets_through(g, PureDP(0.5))))  # type: ignore[misc]
        assert sum(through) == 2 and guard.spent == PureDP(1.0)


@pytest.mark.usefixtures("hasty_threads")
def test_an_odometer_forgets_nothing_between_threads() -> None:
    for _ in range(30):
        meter = Odometer()
        at_once(lambda m=meter: m.spend(PureDP(0.25)))  # type: ignore[misc]
        assert meter.spent == PureDP(4.0)


def test_a_signal_handler_cannot_spend_between_the_look_and_the_act(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    guard = Filter(GaussianDP(1.0))
    refused: list[bool] = []

    def interrupted(parts: Any) -> Budget:
        if not refused:
            refused.append(True)
            with pytest.raises(PrivacyError, match="being spent already"):
                guard.spend(GaussianDP(0.8))
        return compose(parts)

    monkeypatch.setattr(accounting, "compose", interrupted)
    guard.spend(GaussianDP(0.8))
    assert refused and guard.spent == GaussianDP(0.8)


def test_an_interrupt_loses_nothing_that_was_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    total = Odometer()
    for _ in range(3):
        total.spend(GaussianDP(0.1))
    before, calls = total.spent, []

    def interrupted(parts: Any) -> Budget:
        calls.append(len(list(parts)))
        if len(calls) == 2:
            raise KeyboardInterrupt
        return compose(parts)

    monkeypatch.setattr(accounting, "compose", interrupted)
    with pytest.raises(KeyboardInterrupt):
        total.spend(GaussianDP(0.1))
    monkeypatch.undo()
    assert total.spent == before
    total.spend(GaussianDP(0.1))
    assert total.spent == GaussianDP(0.2)


def test_a_fork_spends_nothing_and_does_not_hang() -> None:
    guard = Filter(PureDP(1.0))
    held, free = threading.Event(), threading.Event()

    def hold() -> None:
        with guard._lock:
            held.set()
            free.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Python, about forks of processes with threads
        child = os.fork()
    if child == 0:
        try:
            guard.spend(PureDP(0.1))
        except PrivacyError:
            os._exit(7)
        os._exit(0)
    free.set()
    thread.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
