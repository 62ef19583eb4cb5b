"""The ledger: what was written is read back, and every forgery is caught."""

import copy
import json
import math
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

import dpbandits as dpb
from dpbandits.cli.main import app
from dpbandits.errors import InvalidInput, LedgerError
from dpbandits.policies import policy_kinds
from dpbandits.policies.released import Reading, Released
from dpbandits.privacy.budgets import Budget
from dpbandits.service.entries import restored, written
from dpbandits.service.ledger import (
    Signer,
    canonical,
    fixed,
    make_entry,
    opened_body,
    page_body,
    population_record,
    verify,
)
from dpbandits.testing import example_environment, example_policies

SIGNER, OTHER = Signer(bytes(range(32))), Signer(bytes(32))
Forgery = Callable[[list[dict[str, Any]]], Any]


def chain(*told: tuple[str, dict[str, Any]], experiment: str = "greeting") -> list[dict[str, Any]]:
    """A ledger of these kinds and bodies."""
    entries: list[dict[str, Any]] = []
    for number, (kind, body) in enumerate(told):
        previous = entries[-1]["hash"] if entries else ""
        numbers: dict[str, Any] = {"number": number, "at": 1_800_000_000 + 60 * number}
        made = make_entry(
            SIGNER, experiment=experiment, kind=kind, body=body, previous=previous, **numbers
        )
        entries.append(made)
    return entries


def opened(
    policy: dpb.Policy | None = None, problem: Any = None, **options: Any
) -> tuple[str, dict[str, Any]]:
    policy = policy or dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0))
    problem = problem or dpb.Arms(3, horizon=10_000, capacity=4)
    defaults: dict[str, Any] = {
        "experiment": "greeting",
        "labels": ["hello", "<b>hi</b>", "good day"],
        "in_flight": 100,
        "patience": 60.0,
        "noise": "float" if policy.refuses_exact_noise(problem) else "exact",
        "key": SIGNER.public_key,
        "population": "visitors",
        "budgets": {"colour": dpb.PureDP(0.5)},
    }
    return "opened", opened_body(policy=policy, problem=problem, **(defaults | options))


def page(decided: int, closed: int, **told: Any) -> tuple[str, dict[str, Any]]:
    defaults: dict[str, Any] = {"epoch": 1, "generation": 1, "released": None, "shares": None}
    return "page", page_body(decided=decided, closed=closed, **(defaults | told))


def released(rounds: int) -> Released:
    """What a learner says after so many rounds."""
    policy = dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0))
    learner = policy.start(dpb.Arms(3, horizon=10_000, capacity=4), seed=1)
    chance = random.Random(1)
    for _ in range(rounds):
        learner.update(learner.select(), chance.random())
    record = learner.released()
    assert record is not None and math.isfinite(record.mean[0])
    return record


TOLD = released(300)


def honest() -> list[dict[str, Any]]:
    """All kinds of entries."""
    return chain(
        opened(),
        page(0, 0),
        page(310, 300, generation=2, released=TOLD, shares=[110, 100, 100]),
        ("resumed", {"epoch": 2, "version": dpb.__version__}),
        ("changed", {"act": "retire", "label": "hello", "decided": 320}),
        ("changed", {"act": "revive", "label": "hello", "decided": 320}),
        ("changed", {"act": "add", "label": "hey", "decided": 330}),
        page(400, 330, epoch=2, generation=3, released=TOLD, shares=[150, 100, 100, 50]),
        ("stopped", {"decided": 410, "closed": 410}),
    )


def test_an_untouched_ledger_passes() -> None:
    entries = honest()
    verdict = verify(entries)
    assert (verdict.experiment, verdict.entries, verdict.state) == ("greeting", 9, "stopped")
    assert (verdict.decided, verdict.closed) == (410, 410)
    assert verdict.head == entries[-1]["hash"] and verdict.key == SIGNER.public_key
    assert verdict.guarantee.startswith("All decisions together are 1-GDP")
    said = " ".join(verdict.lines)
    assert "in both experiments on visitors is protected by" in said and "3 changes" in said
    assert "that noise was drawn" in said and "rewritten as a whole" in said
    # Also after a journey as JSON, and with what was noted earlier.
    travelled = json.loads(json.dumps(entries))
    told = verify(travelled, key=SIGNER.public_key.upper(), head=entries[2]["hash"])
    assert "rewritten as a whole" not in " ".join(told.lines)
    json.dumps(told.to_dict())


def test_every_beginning_of_a_ledger_passes() -> None:
    entries = honest()
    assert [verify(entries[:count]).entries for count in range(1, 10)] == list(range(1, 10))


# Changed in place, by somebody without the key.
def _set(number: int, path: str, value: Any) -> Forgery:
    def forge(entries: list[dict[str, Any]]) -> None:
        *way, last = path.split(".")
        record: Any = entries[number]
        for name in way:
            record = record[name]
        assert record[last] != value
        record[last] = value

    return forge


def _rehashed(entries: list[dict[str, Any]]) -> None:
    """A lower count, and all hashes mended: only the signatures are not."""
    told = [(entry["kind"], entry["body"]) for entry in entries]
    told[2][1]["decided"] = 305
    signatures = [entry["signature"] for entry in entries]
    entries[:] = [one | {"signature": old} for one, old in zip(chain(*told), signatures, strict=True)]


def _signed_by_another(entries: list[dict[str, Any]]) -> None:
    entries[-1]["signature"] = OTHER.sign(entries[-1]["hash"])


def _spliced(entries: list[dict[str, Any]]) -> None:
    """An entry of another ledger under the same key."""
    entries[-1] = chain(*[page(0, 0)] * 8, ("stopped", {"decided": 9, "closed": 9}))[-1]


IN_PLACE: dict[str, tuple[Forgery, str]] = {
    "a smaller budget": (_set(0, "body.policy.privacy.mu", "0.5"), "changed after"),
    "another sentence": (_set(0, "body.guarantee.sentence", "All is well."), "changed after"),
    "another count": (_set(2, "body.decided", 309), "changed after"),
    "another mean": (_set(2, "body.released.mean", ["0.5", "0.5", "0.5"]), "changed after"),
    "another time": (_set(2, "at", 1), "changed after"),
    "another experiment": (_set(3, "experiment", "farewell"), "changed after"),
    "a hash of its own": (_set(2, "hash", "0" * 64), "changed after"),
    "another predecessor": (_set(2, "previous", "0" * 64), "changed after"),
    "a number in place of decimals": (_set(0, "body.policy.privacy.mu", 1.0), "cannot be hashed"),
    "a field more": (_set(2, "body", {"decided": 310, "note": "x"}), "changed after"),
    "a field missing": (lambda entries: entries[2].pop("previous"), "missing required field"),
    "hashes mended": (_rehashed, "entry 2: it is not signed"),
    "a signature by another key": (_signed_by_another, "entry 8: it is not signed"),
    "a signature that is none": (_set(4, "signature", "not hex"), "entry 4: it is not signed"),
    "one entry left out": (lambda entries: entries.pop(3), "entry 3: it is numbered 4"),
    "two entries exchanged": (lambda entries: entries.insert(2, entries.pop(3)), "entry 2: it is numb"),
    "an entry twice": (lambda entries: entries.insert(3, entries[2]), "entry 3: it is numbered 2"),
    "the beginning cut off": (lambda entries: entries.pop(0), "entry 0: it is numbered 1"),
    "an entry of another ledger": (_spliced, "entry 8: it does not follow"),
    "nothing": (lambda entries: entries.clear(), "empty"),
    "no record": (lambda entries: entries.append([]), "entry 9: Expected"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_ledger_that_was_changed_is_caught(name: str) -> None:
    forge, said = IN_PLACE[name]
    entries = copy.deepcopy(honest())
    forge(entries)
    with pytest.raises(LedgerError, match=said):
        verify(entries)


# Written with the key, but telling what cannot be.
def _body(number: int, path: str, value: Any) -> Forgery:
    def forge(told: list[dict[str, Any]]) -> None:
        _set(number, f"body.{path}", value)(told)

    return forge


def _promised(told: list[dict[str, Any]]) -> None:
    """A better guarantee, consistent in itself."""
    better = dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(0.5)).guarantee(dpb.Arms(3, horizon=10_000))
    told[0]["body"]["guarantee"] = written(better.to_dict())


def _promised_by_another_version(told: list[dict[str, Any]]) -> None:
    _promised(told)
    told[0]["body"]["version"] = "99.0"


def _joint(told: list[dict[str, Any]]) -> None:
    """Shares where the decisions of others are nobody's business."""
    policy = dpb.RandomizedLinUCB(privacy=dpb.GaussianDP(1.0))
    told[0]["body"] = opened(policy, dpb.LinearContexts(2), labels=[], budgets={})[1]
    told[:] = [told[0], {"kind": "page", "body": page(1, 1, shares=[1])[1]}]


def _less_than_a_sibling(told: list[dict[str, Any]]) -> None:
    record = written(population_record("visitors", {"greeting": dpb.GaussianDP(0.1)}))
    told[0]["body"]["population"] = record


def _too_many_added(told: list[dict[str, Any]]) -> None:
    added = {"act": "add", "label": "yo", "decided": 330}
    told.insert(7, {"kind": "changed", "body": added})


def _last_one_retired(told: list[dict[str, Any]]) -> None:
    acts = [{"act": "retire", "label": label, "decided": 330} for label in told[0]["body"]["labels"]]
    told[4:] = [{"kind": "changed", "body": act} for act in acts]


SIGNED: dict[str, tuple[Forgery, str]] = {
    "a better guarantee": (_promised, "entry 0: its guarantee is not the one"),
    "a better sentence": (
        _body(0, "guarantee.sentence", "All is well."),
        "entry 0: its guarantee is not",
    ),
    "a budget better by a millionth": (_body(0, "guarantee.budget.mu", "0.999999"), "entry 0: its guar"),
    "a guarantee from another version": (
        _promised_by_another_version,
        r"written by dpbandits 99\.0",
    ),
    "no such policy": (_body(0, "policy.kind", "Oracle"), "nothing follows from its recipes"),
    "a policy of another problem": (_body(0, "policy.kind", "LinUCB"), "nothing follows"),
    "exact noise that cannot be": (
        lambda told: told[0].update(
            body=opened(dpb.arms.UCB1(), dpb.Arms(3), noise="exact", budgets={})[1]
        ),
        "its noise cannot be exact",
    ),
    "noise that is not known": (_body(0, "noise", "none"), "entry 0: Invalid enum value"),
    "noise from a seed": (_body(0, "seeded", True), "comes from a seed"),
    "a name that steers a terminal": (
        _body(0, "follows", "a\x1b[2Jb"),
        "entry 0: Expected `str` matching",
    ),
    "a label twice": (_body(0, "labels", ["a", "a", "b"]), "same label"),
    "its own successor": (_body(0, "follows", "greeting"), "succeeds itself"),
    "another population": (_body(0, "terms.population", "members"), "not the one of its terms"),
    "a population without it": (_body(0, "population.experiments", ["colour", "x"]), "its own budget"),
    "a population that adds up to less": (_body(0, "population.together.mu", "1.0"), "add up to some"),
    "a smaller budget for the population": (_less_than_a_sibling, "its own budget"),
    "a key that is none": (_body(0, "key", "00"), "not one of Ed25519"),
    "opened twice": (lambda told: told.insert(1, told[0]), "entry 1: the experiment was opened"),
    "not opened": (lambda told: told.pop(0), "does not say what was opened"),
    "a kind that is not known": (lambda told: told[1].update(kind="note"), "entry 1: its kind"),
    "fewer decisions": (_body(7, "decided", 329), "entry 7: there are fewer decisions"),
    "fewer rounds closed": (_body(7, "closed", 299), "entry 7: fewer rounds"),
    "more closed than decided": (_body(2, "closed", 311), "entry 2: more rounds are closed"),
    "too many open": (_body(2, "closed", 209), "more than 100 rounds are open"),
    "an epoch again": (_body(3, "epoch", 1), "entry 3: its epoch is not"),
    "a writer of an older epoch": (_body(7, "epoch", 1), "entry 7: it is of an epoch that is over"),
    "a generation again": (_body(7, "generation", 1), "entry 7: it is of a generation"),
    "a count below 0": (_body(2, "decided", -1), "entry 2: Expected `int` >= 0"),
    "a count as text": (_body(2, "decided", "310"), "entry 2: Expected `int`"),
    "shares in the joint model": (_joint, "entry 1: it counts decisions that are not public"),
    "more shares than decisions": (_body(2, "shares", [111, 100, 100]), "add up to more"),
    "a share that shrinks": (_body(7, "shares", [150, 99, 100, 51]), "smaller than before"),
    "a share missing": (_body(2, "shares", [110, 100]), "one share for each label"),
    "more rounds released than closed": (_body(2, "released.rounds", 301), "more rounds than there"),
    "values that do not fit": (_body(2, "released.low", ["0.0"]), "do not fit together"),
    "too few rounds for its values": (_body(2, "released.plays", [1]), "do not fit together"),
    "values that are no numbers": (_body(2, "released.mean", ["a", "b", "c"]), "not numbers"),
    "an interval turned round": (_body(2, "released.low", ["1.5", None, None]), "ends before it begins"),
    "more spent than promised": (
        _body(2, "released.spent", {"kind": "GaussianDP", "mu": "2.0"}),
        "more was spent",
    ),
    "spent in no budget": (_body(2, "released.spent", {"kind": "Arms"}), "cannot be read"),
    "an action that is not there": (_body(4, "label", "bye"), "an action that there is not"),
    "revived without having left": (_body(4, "act", "revive"), "nothing to revive"),
    "an action added twice": (_body(6, "label", "hello"), "adds an action that there was"),
    "more actions than declared": (_too_many_added, "more actions than were declared"),
    "no action left": (_last_one_retired, "retires the last action"),
    "life after the end": (
        lambda told: told.append({"kind": "resumed", "body": {"epoch": 3, "version": "1"}}),
        "entry 9: it comes after the experiment's end",
    ),
}


@pytest.mark.parametrize("name", SIGNED)
def test_a_ledger_that_tells_what_cannot_be_is_caught(name: str) -> None:
    """Whoever holds the key can sign anything, so what is signed is checked too."""
    forge, said = SIGNED[name]
    told = [{"kind": entry["kind"], "body": copy.deepcopy(entry["body"])} for entry in honest()]
    forge(told)
    with pytest.raises(LedgerError, match=said):
        verify(chain(*((one["kind"], one["body"]) for one in told)))


def test_time_does_not_run_back_and_experiments_do_not_mix() -> None:
    first = honest()[0]
    common: dict[str, Any] = {"number": 1, "kind": "abandoned", "body": {"reason": "the key was lost"}}
    link = {"previous": first["hash"]}
    fine = make_entry(SIGNER, experiment="greeting", at=first["at"], **common, **link)
    assert verify([first, fine]).state == "abandoned"
    earlier = make_entry(SIGNER, experiment="greeting", at=first["at"] - 1, **common, **link)
    with pytest.raises(LedgerError, match="earlier than that"):
        verify([first, earlier])
    other = make_entry(SIGNER, experiment="farewell", at=first["at"], **common, **link)
    with pytest.raises(LedgerError, match="another experiment"):
        verify([first, other])


def test_a_ledger_rewritten_as_a_whole_is_caught_by_what_was_noted() -> None:
    noted, rewritten = honest(), chain(opened(), page(5, 5))
    assert verify(rewritten).decided == 5
    with pytest.raises(LedgerError, match="the hash noted earlier is not in this ledger"):
        verify(rewritten, head=noted[3]["hash"])
    with pytest.raises(LedgerError, match="not signed under the key"):
        verify(noted, key=OTHER.public_key)


@pytest.mark.parametrize("kind", policy_kinds().values(), ids=lambda kind: kind.name())
def test_the_guarantee_of_every_policy_is_derived_again(kind: type[dpb.Policy]) -> None:
    """Recipes, budgets and all survive being written as decimals."""
    for policy in example_policies(kind):
        problem = example_environment(kind.problem_kind).problem(1000)
        entries = json.loads(json.dumps(chain(opened(policy, problem, labels=[], budgets={}))))
        assert verify(entries).guarantee == str(policy.guarantee(problem))


def test_actions_without_labels_are_known_by_their_numbers() -> None:
    first = opened(labels=[])
    retired = ("changed", {"act": "retire", "label": "2", "decided": 5})
    assert verify(chain(first, page(5, 5, shares=[2, 2, 1]), retired)).decided == 5
    with pytest.raises(LedgerError, match="an action that there is not"):
        verify(chain(first, ("changed", {"act": "retire", "label": "3", "decided": 5})))
    with pytest.raises(LedgerError, match="one share for each label"):
        verify(chain(first, page(5, 5, shares=[5])))


def test_decisions_end_where_the_guarantee_does() -> None:
    policy, problem = dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0)), dpb.Arms(3, horizon=1000)
    assert policy.guarantee(problem).horizon == 1000
    first = opened(policy, problem, budgets={})
    assert verify(chain(first, page(1000, 1000))).decided == 1000
    with pytest.raises(LedgerError, match="entry 1: decisions went on after round 1,000"):
        verify(chain(first, page(1001, 1000)))
    # Where it holds for any number of rounds, or nothing is promised, they may go on.
    for longer in (dpb.NoiseAwareIMED(privacy=dpb.GaussianDP(1.0)), dpb.arms.UCB1()):
        assert verify(chain(opened(longer, problem, budgets={}), page(1001, 1000)))


def test_sets_may_have_more_shares_than_decisions() -> None:
    policy = dpb.FocusedMatroidUCB(privacy=dpb.PureDP(1.0))
    problem = dpb.problems.MatroidBases(dpb.problems.UniformMatroid(4, 2))
    first = opened(policy, problem, labels=list("abcd"), budgets={})
    assert verify(chain(first, page(10, 10, shares=[10, 10, 0, 0]))).decided == 10
    with pytest.raises(LedgerError, match="add up to more"):
        verify(chain(first, page(10, 10, shares=[11, 9, 0, 0])))


def test_budgets_of_a_population_add_up() -> None:
    def told(*budgets: Budget) -> dict[str, Any]:
        return population_record("shoppers", {f"e{i}": one for i, one in enumerate(budgets)})

    two = told(dpb.PureDP(1.0), dpb.PureDP(0.5))
    assert two["together"] == {"kind": "PureDP", "epsilon": 1.5} and "1.5-DP" in two["sentence"]
    assert "only experiment" in told(dpb.PureDP(1.0))["sentence"]
    assert "nothing is promised" in told(dpb.PureDP(1.0), dpb.NonPrivate())["sentence"]
    unlike = told(dpb.ApproxDP(1.0, 1e-6), dpb.GaussianDP(1.0))
    assert unlike["together"] is None and "do not add up" in unlike["sentence"]
    for budgets in ({"a": dpb.ApproxDP(1.0, 1e-6)}, {"a": dpb.NonPrivate(), "1.5": dpb.PureDP(0.25)}):
        assert verify(chain(opened(budgets=budgets, population="1.0")))


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_decimals_are_read_back_exactly(value: float) -> None:
    text = fixed(value)
    assert "e" not in text and "." in text and restored(text) == value


def test_what_cannot_be_written_is_refused() -> None:
    for value in (math.nan, math.inf):
        with pytest.raises(InvalidInput, match="finite"):
            fixed(value)
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    for odd in (0.5, 2**60, deep, "\ud800", {"x": object()}):
        with pytest.raises(LedgerError, match="cannot be hashed"):
            canonical(odd)


def test_hashes_are_what_another_language_would_compute() -> None:
    """By JavaScript, that is; a change here makes every ledger that there is unreadable."""
    body = {"epoch": 2, "version": "é\n", "x": 0.25}
    entry = make_entry(SIGNER, experiment="e", number=0, at=1, kind="resumed", body=body, previous="")
    assert canonical({"b": entry["body"], "a": None}) == (
        b'{"a":null,"b":{"epoch":2,"version":"\xc3\xa9\\n","x":"0.25"}}'
    )
    assert entry["hash"] == "a24caad8adfcba0dc322b40c0de38e88509f19d7a9c775f365f0f939b399eb03"
    assert entry["signature"].startswith("a34bc1246be375fac761ba89b194fa6e6aa5c86a33273f92")


def test_a_page_of_pairs_keeps_its_rows() -> None:
    rows = released(300).mean[:2].reshape(1, 2)
    reading = Reading(what="pair", mean=rows, low=rows, high=rows, leading=(0,))
    guarantee = dpb.arms.UCB1().guarantee(dpb.Arms(2))
    record = Released.of(reading, guarantee, rounds=1, decided=1, spent=None)
    told = page(1, 1, released=record)[1]["released"]
    assert told["mean"] == [[fixed(float(one)) for one in rows[0]]] and "guarantee" not in told


def run(*arguments: str, fed: str | None = None) -> Any:
    return CliRunner().invoke(app, ["verify", *arguments], input=fed)


def test_the_command(tmp_path: Path) -> None:
    path, entries = tmp_path / "ledger.json", honest()
    path.write_text(json.dumps(entries))
    done = run(str(path), "--key", SIGNER.public_key, "--head", entries[1]["hash"])
    assert done.exit_code == 0, done.output
    assert "The ledger holds together (9 entries)" in done.stdout
    assert "All decisions together are 1-GDP" in done.stdout and "410 decisions" in done.stdout
    assert "that noise was drawn" in done.stdout and entries[-1]["hash"] in done.stdout
    # The answer of a service, by a pipe.
    answer = json.dumps({"entries": entries})
    found = json.loads(run("-", "--json", fed=answer).stdout)
    assert found["decided"] == 410 and found["entries"] == 9 and found["head"] == entries[-1]["hash"]


@contextmanager
def answering(entries: list[dict[str, Any]], at_once: int) -> Iterator[str]:
    """A service that gives a ledger in parts."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            place, _, after = self.path.partition("?after=")
            start = int(after) + 1
            self.send_response(200 if place == "/ledger" else 404)
            self.end_headers()
            self.wfile.write(json.dumps({"entries": entries[start : start + at_once]}).encode())

        def log_message(self, format: str, *values: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("at_once", [1, 4, 1000])
def test_the_command_asks_a_service_for_all_of_it(at_once: int) -> None:
    entries = honest()
    with answering(entries, at_once) as address:
        found = json.loads(run(f"{address}/ledger", "--json").stdout)
        missing = run(f"{address}/nothing").exception
    assert found["entries"] == 9 and found["head"] == entries[-1]["hash"]
    assert isinstance(missing, LedgerError) and "does not answer with a ledger" in str(missing)
    gone = run(f"{address}/ledger").exception
    assert isinstance(gone, LedgerError) and "does not answer with a ledger" in str(gone)


def test_the_command_fails_with_one_sentence(tmp_path: Path) -> None:
    path, entries = tmp_path / "ledger.json", honest()
    entries[2]["body"]["decided"] += 1
    for text, said in (
        (json.dumps(entries), "entry 2: it was changed after it was hashed"),
        ("{", "is not a JSON document"),
        ("[" * 100_000, "is not a JSON document"),
        ('"entries"', "expected a list of entries"),
        ('{"entries": {}}', "expected a list of entries"),
        ('[{"at": 1, "at": 2}]', "given twice"),
        ("[NaN]", "entry 0"),
    ):
        path.write_text(text)
        done = run(str(path))
        assert isinstance(done.exception, LedgerError) and said in str(done.exception), text
    path.write_bytes(b"\xff")
    assert isinstance(run(str(path)).exception, LedgerError)
    assert isinstance(run(str(tmp_path / "none.json")).exception, OSError)
