"""Three tasks of somebody who has just met the library, as they would be done."""

from pathlib import Path

import numpy as np
import pytest

import dpbandits as dpb
from dpbandits.errors import TooLate


def test_a_news_page_with_fifty_readers_in_flight_late_clicks_and_readers_who_return(
    tmp_path: Path,
) -> None:
    """Readers like one of three topics; clicks come after 0 to 80 others, and half of all never.

    What is learned must be as if every click in time had come at once: none goes to another reader.
    Better than guessing: 800 decisions of the last 1,000 right by chance has probability below 10⁻¹⁰⁰.
    """
    rng = np.random.default_rng(5)
    policy = dpb.RandomizedLinUCB(privacy=dpb.GaussianDP(4.0))
    page, prompt = (policy.start(dpb.LinearContexts(3), in_flight=50, seed=2) for _ in range(2))
    taste = np.array([0.9, -0.2, -0.9])
    coming: dict[int, list[tuple[str, float]]] = {}
    late, right = 0, []
    for now in range(3000):
        if now == 1500:  # a restart in the middle, with fifty readers waiting
            page = dpb.load(page.save(tmp_path / "page.dpb"))
        articles = np.eye(3)[rng.permutation(3)]
        reader = f"reader-{rng.integers(2500)}"
        ticket, other = (one.decide(articles, person=reader) for one in (page, prompt))
        assert ticket.action == other.action
        right.append(articles[ticket.action, 0] == 1.0)
        reward = 1.0 if 2.0 * rng.random() < 1.0 + articles[ticket.action] @ taste else -1.0
        delay = int(rng.integers(81)) if rng.random() < 0.9 else 1_000_000
        if delay < 50:
            prompt.update(other, reward)
        coming.setdefault(now + delay, []).append((ticket.round, reward))
        for name, answer in coming.pop(now, []):
            try:
                page.update(name, answer)
            except TooLate:
                late += 1
    assert 800 < late < 1500  # delays of 50 and more, of those that came at all
    assert page.decided == 3000 and page.rounds == 2950
    assert np.mean(right[-1000:]) > 0.8
    record = page.released()
    assert record is not None and record.what == "parameter" and record.mean[0] > record.mean[2]
    assert "one person's context and reward" in str(record)


@pytest.mark.parametrize("seed", range(3))
def test_an_email_test_of_two_thousand_with_a_readout(seed: int) -> None:
    """Four subject lines; answers trickle in; one line is dropped, another added; who won, how sure.

    With a seed: in about one run of ten the line that is new on the third morning has only its first
    batch back when the test ends, as all of a morning are in flight at once, and nothing is sure then.
    Each interval misses its rate with probability .05 or so; three of five with about .001.
    """
    rng, rates = np.random.default_rng(seed), np.array([0.10, 0.22, 0.14, 0.12, 0.32])
    test = dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0)).start(
        dpb.Arms(4, capacity=5, rounds_per_person=4), in_flight=2000, seed=seed
    )
    for morning in range(4):
        people = [f"subscriber-{number}" for number in rng.permutation(2000)]
        sent = test.decide_many(2000, persons=people)
        opened = rng.random(2000) < rates[sent.actions]
        for part in np.array_split(rng.permutation(2000), 5):  # they come in five lots, in any order
            assert test.update_many([sent.rounds[index] for index in part], opened[part]).all()
        if morning == 1:
            test.retire(0)
            assert test.add() == 4
        elif morning > 1:
            assert 0 not in sent.actions[100:] or morning == 2
    test.close()
    record = test.released()
    assert record is not None and record.leading == (4,) and (record.sure or 0.0) > 0.99
    known = np.isfinite(record.mean)
    missed = (rates < record.low) | (rates > record.high)
    assert known.all() and missed[known].sum() < 3
    assert record.plays is not None and record.plays.sum() <= 8000
    said = str(record)
    assert "at most 4 rounds" in said and "2 changes" in said and "out of play" in said


def test_a_film_shelf_for_many_at_once() -> None:
    """Three films of independent genres; thirty people in flight; ratings for the whole shelf.

    The best basis is worth .5 more than an average one; after 4,000 rounds it is played more often than
    not in the last 1,000: by chance, below 10⁻¹⁰⁰.
    """
    films = dpb.matroids.LinearMatroid([(1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1), (1, 0, 1)])
    liked, rng = np.array([0.9, 0.3, 0.7, 0.8, 0.2]), np.random.default_rng(1)
    shelf = dpb.FocusedMatroidUCB(privacy=dpb.PureDP(2.0)).start(
        dpb.MatroidBases(films), in_flight=30, seed=1
    )
    waiting: list[dpb.Ticket] = []
    shown = []
    for _ in range(4000):
        waiting.append(shelf.decide())
        shown.append(tuple(sorted(waiting[-1].action)))
        if len(waiting) > 15:
            ticket = waiting.pop(int(rng.integers(4)) if rng.random() < 0.5 else 0)
            shelf.update(ticket, rng.random(3) < liked[ticket.action])
    best = films.best_basis(liked)
    assert best == (0, 2, 3)
    assert shown[-1000:].count(best) > 500
    record = shelf.released()
    assert record is not None and record.leading == best
