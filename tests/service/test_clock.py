"""The clock never runs back, whatever the machine's does."""

from hypothesis import given
from hypothesis import strategies as st

from dpbandits.service.clock import Clock


class Watch:
    """The machine's two clocks."""

    def __init__(self) -> None:
        self.wall, self.steady = 1_000_000.0, 50.0

    def clock(self) -> Clock:
        return Clock(wall=lambda: self.wall, steady=lambda: self.steady)


def test_it_follows_the_steady_clock_and_not_the_wall() -> None:
    watch = Watch()
    clock = watch.clock()
    assert clock.now() == 1_000_000.0
    watch.wall -= 86_400.0
    watch.steady += 1.5
    assert clock.now() == 1_000_001.5


def test_after_a_restart_with_the_wall_set_back_it_begins_at_the_last_event() -> None:
    watch = Watch()
    watch.wall -= 86_400.0
    clock = watch.clock()
    clock.not_before(1_000_000.0)
    assert clock.now() == 1_000_000.0
    watch.steady += 2.0
    assert clock.now() == 1_000_002.0


def test_an_event_of_the_past_changes_nothing() -> None:
    clock = Watch().clock()
    clock.not_before(999_999.0)
    clock.not_before(0.0)
    assert clock.now() == 1_000_000.0


def test_times_are_in_milliseconds() -> None:
    watch = Watch()
    clock = watch.clock()
    watch.steady += 0.123456
    assert clock.now() == 1_000_000.123


@given(st.lists(st.tuples(st.floats(0.0, 1e3), st.floats(-1e6, 1e6), st.floats(0.0, 3e6)), max_size=20))
def test_it_never_runs_back(steps: list[tuple[float, float, float]]) -> None:
    """Time passes, the wall is set, an event is read back, the process restarts."""
    watch = Watch()
    clock, last = watch.clock(), 0.0
    for passed, moved, event in steps:
        watch.steady += passed
        watch.wall += passed + moved
        if moved < 0.0:  # a restart
            clock = watch.clock()
            clock.not_before(last)
        clock.not_before(event)
        assert clock.now() >= round(max(last, event), 3)
        last = clock.now()
