"""Experiments that cannot go on, their successors, and populations whose budgets add up."""

import re
import shutil
from pathlib import Path

import pytest
from writers import ARMS, Hand, ask, code_of, decide, writing

from dpbandits.errors import InvalidInput, ServiceError
from dpbandits.service.commands import Change, Open, Reward, Stop
from dpbandits.service.ledger import verify
from dpbandits.service.recovery import directory
from dpbandits.service.run import open_keyring, open_store
from dpbandits.service.service import together
from dpbandits.service.succession import abandon, follower, succeed
from dpbandits.service.terms import Terms


def entries(folder: Path, name: str) -> list[dict[str, object]]:
    store = open_store(str(folder / "service.db"))
    one = next(one for one in directory(store) if one.terms.name == name)
    with store.reading() as db:
        found = store.ledger_entries(db, one.id)
    store.close()
    return found


def test_an_abandoned_experiment_ends_in_its_ledger_and_its_successor_names_it(tmp_path: Path) -> None:
    with writing(tmp_path, ARMS) as writer:
        decide(writer)
    store = open_store(str(tmp_path / "service.db"))
    keyring = open_keyring(store, tmp_path / "keyring")
    succeed(store, keyring, "headline", "headline-2", "the disk was replaced")
    store.close()
    old, new = entries(tmp_path, "headline"), entries(tmp_path, "headline-2")
    assert old[-1]["kind"] == "abandoned"
    verify(old)
    verdict = verify(new)
    body = new[0]["body"]
    assert isinstance(body, dict)
    assert body["follows"] == "headline"
    assert body["population"]["experiments"] == ["headline", "headline-2"]
    assert any("2-DP in all" in line for line in verdict.lines)
    with writing(tmp_path) as writer:
        assert writer.running["headline"].state == "abandoned"
        assert decide(writer, "headline-2").opened.number == 0
        assert code_of(decide(writer)) == "stopped"


def test_a_database_that_was_rolled_back_is_refused_until_its_experiment_is_abandoned(
    tmp_path: Path,
) -> None:
    with writing(tmp_path, ARMS) as writer:
        decide(writer)
    shutil.copy(tmp_path / "service.db", tmp_path / "copy.db")
    with writing(tmp_path) as writer:
        decide(writer)
    for one in ("service.db-wal", "service.db-shm"):
        (tmp_path / one).unlink(missing_ok=True)
    shutil.copy(tmp_path / "copy.db", tmp_path / "service.db")
    with pytest.raises(AssertionError, match="older than what was answered"), writing(tmp_path):
        pass
    store = open_store(str(tmp_path / "service.db"))
    abandon(store, open_keyring(store, tmp_path / "keyring"), "headline", "rolled back")
    store.close()
    with writing(tmp_path) as writer:
        assert writer.running["headline"].state == "abandoned"


def test_every_experiment_of_a_restored_backup_gets_its_successor(tmp_path: Path) -> None:
    """One that cannot go on does not stand in the way of another's; nor does its own end."""
    both = ARMS, {**ARMS, "name": "teaser"}
    with writing(tmp_path, *both) as writer:
        decide(writer)
    shutil.copy(tmp_path / "service.db", tmp_path / "copy.db")
    with writing(tmp_path) as writer:
        decide(writer), decide(writer, "teaser")
    shutil.copy(tmp_path / "copy.db", tmp_path / "service.db")
    store = open_store(str(tmp_path / "service.db"))
    keyring = open_keyring(store, tmp_path / "keyring")
    succeed(store, keyring, "headline", "headline-2", "restored")
    abandon(store, keyring, "teaser", "restored")
    succeed(store, keyring, "teaser", "teaser-2", "restored")
    with pytest.raises(InvalidInput, match="never used twice"):
        succeed(store, keyring, "teaser", "headline-2", "restored")
    store.close()
    with writing(tmp_path, *both) as writer:
        states = {name: one.state for name, one in writer.running.items()}
        assert decide(writer, "teaser-2").opened.number == 0
    ended = dict.fromkeys(("headline", "teaser"), "abandoned")
    assert states == {**ended, **dict.fromkeys(("headline-2", "teaser-2"), "running")}
    opened = entries(tmp_path, "teaser-2")[0]["body"]
    assert isinstance(opened, dict) and opened["follows"] == "teaser"


def test_nothing_is_abandoned_while_a_service_runs_or_twice(tmp_path: Path) -> None:
    with writing(tmp_path, ARMS):
        store = open_store(str(tmp_path / "service.db"))
        keyring = open_keyring(store, tmp_path / "keyring")
        with pytest.raises(ServiceError, match="running"):
            abandon(store, keyring, "headline", "")
        store.close()
    store = open_store(str(tmp_path / "service.db"))
    keyring = open_keyring(store, tmp_path / "keyring")
    with pytest.raises(InvalidInput, match="no experiment"):
        abandon(store, keyring, "other", "")
    abandon(store, keyring, "headline", "")
    with pytest.raises(InvalidInput, match="ended already"):
        abandon(store, keyring, "headline", "")
    store.close()


def test_a_successor_keeps_what_was_recommended_unless_it_asks_for_more() -> None:
    before = Terms.read(ARMS)
    after = follower(before, "next")
    assert after.policy == before.policy
    assert after.population == "headline"
    assert follower(before, "next", privacy="eps=2").policy.privacy.size == 2.0
    told_apart = {"population": "readers", "rounds_per_person": 1}
    assert follower(before, "next", **told_apart).population == "readers"
    with pytest.raises(InvalidInput, match="name of its own"):
        follower(before, "headline")


def test_a_stopped_experiment_publishes_its_result_and_erases_the_rest(tmp_path: Path) -> None:
    with writing(tmp_path, ARMS) as writer:
        number = decide(writer).opened.number
        one = writer.running["headline"]
        assert ask(writer, Reward(one.id, number, 1.0)) is True
        assert ask(writer, Stop("headline")) == "headline"
        assert code_of(decide(writer)) == "stopped"
        assert code_of(ask(writer, Stop("headline"))) == "stopped"
        assert code_of(ask(writer, Open(one.terms))) == "exists"
        with writer.store.reading() as db:
            assert writer.store.snapshot(db, one.id) is None
    assert not re.search(rf'"{one.id}"', (tmp_path / "keyring").read_text())
    verify(entries(tmp_path, "headline"))


def test_a_ticket_from_the_future_ends_decisions_until_somebody_looks(tmp_path: Path) -> None:
    """Also after a restart, by which time there may be as many decisions as the ticket's number says."""
    hand = Hand()
    with writing(tmp_path, ARMS, {**ARMS, "name": "other"}, hand=hand) as writer:
        decide(writer)
        one = writer.running["headline"]
        assert code_of(ask(writer, Reward(one.id, 1, 1.0))) == "ticket-from-the-future"
        assert code_of(decide(writer)) == "ticket-from-the-future"
        assert code_of(ask(writer, Stop("headline"))) == "ticket-from-the-future"
        assert code_of(ask(writer, Change("headline", "retire", "calm"))) == "ticket-from-the-future"
        hand.moment += 100.0  # a fold would be due, and a page of the ledger
        assert decide(writer, "other").opened.number == 0
    with writing(tmp_path) as writer:
        one = writer.running["headline"]
        assert one.state == "suspended"
        assert code_of(decide(writer)) == "ticket-from-the-future"
        assert code_of(ask(writer, Reward(one.id, 0, 1.0))) == "ticket-from-the-future"
        assert decide(writer, "other").opened.number == 1
    assert [entry["kind"] for entry in entries(tmp_path, "headline")] == ["opened"]
    store = open_store(str(tmp_path / "service.db"))
    succeed(store, open_keyring(store, tmp_path / "keyring"), "headline", "again", "rolled back")
    store.close()
    with writing(tmp_path) as writer:
        assert decide(writer, "again").opened.number == 0


def test_a_successor_is_seen_on_the_card_of_the_one_before(tmp_path: Path) -> None:
    with writing(tmp_path, ARMS, {**ARMS, "name": "other"}) as writer:
        before = writer.running["headline"]
        assert together(before, list(writer.running.values())) == ""
        ask(writer, Open(follower(before.terms, "headline-2"), "headline"))
        found = writer.running
        said = together(found["headline"], list(found.values()))
        assert "both experiments on headline" in said and "2-DP in all" in said
        assert together(found["other"], list(found.values())) == ""


def test_nothing_is_erased_where_no_successor_could_begin(tmp_path: Path) -> None:
    with writing(tmp_path, ARMS):
        pass
    shutil.copy(tmp_path / "service.db", tmp_path / "copy.db")
    with writing(tmp_path, {**ARMS, "name": "later"}) as writer:
        decide(writer, "later")
    shutil.copy(tmp_path / "copy.db", tmp_path / "service.db")
    store = open_store(str(tmp_path / "service.db"))
    with pytest.raises(ServiceError, match="does not know experiment 2"):
        succeed(store, open_keyring(store, tmp_path / "keyring"), "headline", "again", "")
    assert next(iter(directory(store))).is_running
    store.close()
