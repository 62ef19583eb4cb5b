"""The local model: people who trust nobody, a server with nothing to hide, one message each."""

import contextlib
import copy
import dataclasses
import inspect
import json
import math
import pickle
from collections.abc import Callable
from itertools import product
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from faulty_policies import FaultyLocal

import dpbandits as dpb
from dpbandits.audit import replay, report_cost
from dpbandits.audit.recording import ForcedNoise, RecordingNoise, Steer
from dpbandits.engine import Noise, check_policy_verbs, leaves, state_bytes
from dpbandits.errors import (
    BudgetNotAccepted,
    DPBanditsError,
    HorizonReached,
    InvalidInput,
    PrivacyError,
    RoundError,
)
from dpbandits.mechanisms.randomized_response import (
    debiased,
    heads,
    response_bias,
    response_release,
)
from dpbandits.mechanisms.rounding import rounding_step
from dpbandits.policies.arms import local_ucb
from dpbandits.policies.testing import rehearse
from dpbandits.privacy.curves import pure_mu
from dpbandits.testing import check_policy

pytestmark = pytest.mark.slow

ARMS = dpb.Arms(3)
POLICIES = [
    dpb.local.LocalUCB(privacy=privacy, rewards=rewards)
    for privacy in (dpb.PureDP(0.5), dpb.GaussianDP(0.7))
    for rewards in ("binary", "bounded")
]
POLICY = POLICIES[0]


def message_to(server: dpb.local.Server, reward: float = 1.0, seed: int | None = None) -> bytes:
    person = server.policy.person(server.problem, server.broadcast(), seed=seed)
    person.select()
    return person.report(reward)


def served(policy: dpb.local.LocalPolicy = POLICY, rounds: int = 20) -> dpb.local.Server:
    server = policy.start(ARMS)
    for index in range(rounds):
        server.receive(message_to(server, index % 2, seed=index))
    return server


# Randomized response


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.1, 1.0, math.log(3.0), 5.0, 20.0, 27.0])
def test_the_coin_is_exactly_as_private_as_asked(epsilon: float) -> None:
    bias = response_bias(dpb.PureDP(epsilon))
    p = heads(0.5, bias)
    assert p == pytest.approx(math.exp(epsilon) / (1.0 + math.exp(epsilon)), rel=1e-12)
    assert heads(-0.5, bias) == pytest.approx(1.0 - p, abs=1e-15)
    held = response_release(bias).epsilon
    assert held <= epsilon and held == pytest.approx(epsilon, rel=1e-3 if epsilon > 25 else 1e-6)


@pytest.mark.parametrize("mu", [1e-6, 0.3, 1.0, 4.0])
def test_under_gaussian_budgets_the_coin_is_right_as_often_as_the_best_guess(mu: float) -> None:
    # Deciding between N(0, 1) and N(μ, 1) at μ/2 is right with probability Φ(μ/2).
    bias = response_bias(dpb.GaussianDP(mu))
    assert heads(0.5, bias) == pytest.approx(0.5 * (1.0 + math.erf(mu / 2.0 / math.sqrt(2.0))))
    assert pure_mu(response_release(bias).epsilon) == pytest.approx(mu, rel=1e-9)


def test_coins_by_brute_force_over_a_grid_of_values() -> None:
    """Every pair of values and both answers: the worst log ratio is ε, reached at the ends only."""
    bias, values = response_bias(dpb.PureDP(0.8)), np.linspace(-0.5, 0.5, 101)
    chances = np.array([heads(value, bias) for value in values])
    ratios = np.maximum(
        np.abs(np.log(chances[:, None] / chances)),
        np.abs(np.log((1 - chances[:, None]) / (1 - chances))),
    )
    assert ratios.max() == pytest.approx(0.8, rel=1e-12)
    assert np.argwhere(ratios > 0.8 * (1 - 1e-9)).tolist() == [[0, 100], [100, 0]]
    # And it is unbiased: the mean of the estimate over both answers is the value.
    means = chances * debiased(1.0, bias) + (1 - chances) * debiased(0.0, bias)
    np.testing.assert_allclose(means, values, atol=1e-12)


def test_coins_at_the_ends_of_what_is_possible() -> None:
    assert response_bias(dpb.NonPrivate()) == 1.0
    for budget in (dpb.PureDP(1e12), dpb.GaussianDP(1e6)):
        assert 0.0 < 1.0 - response_bias(budget) < 2.0**-38
    with pytest.raises(BudgetNotAccepted, match="randomized response is calibrated"):
        response_bias(dpb.ApproxDP(1.0, 1e-6))


@pytest.mark.parametrize("mu", [1e-12, 2e-12, 1e-9, 1e-4, 0.3, 1.0, 5.0, 13.0, 13.9, 14.1])
def test_coins_cost_no_more_than_the_budget_as_they_are_drawn(mu: float) -> None:
    """Of the probabilities it really has: rounded to the nearest, they cost up to 2·10⁻⁷ more."""
    with mp.workdps(50):
        bias = response_bias(dpb.GaussianDP(mu))
        told = max(mp.mpf(heads(0.5, bias)) - 0.5, 0.5 - mp.mpf(heads(-0.5, bias)))
        assert mp.sqrt(8) * mp.erfinv(2 * told) <= mu * (1 + mp.mpf("2e-13"))
        bias = response_bias(dpb.PureDP(mu))
        low, high = mp.mpf(heads(-0.5, bias)), mp.mpf(heads(0.5, bias))
        assert max(mp.log(high / low), mp.log((1 - low) / (1 - high))) <= mu * (1 + mp.mpf("2e-13"))


def test_a_budget_too_small_for_any_coin_is_refused() -> None:
    with pytest.raises(InvalidInput, match="cannot be biased by as little"):
        response_bias(dpb.GaussianDP(2e-16))


# What a server makes up


def _people(policy: dpb.local.LocalPolicy, problem: dpb.Problem, broadcast: bytes) -> list[int]:
    """The sizes of the messages of extreme people on a broadcast."""
    sent = []
    for context, reward in problem.testing.extreme_people(problem):
        if isinstance(context, tuple) and not np.isfinite(context[0]).all():
            continue
        person = policy.person(problem, broadcast, seed=1)
        person.select(
            *(() if context is None else context if isinstance(context, tuple) else (context,))
        )
        sent.append(len(person.skip() if math.isnan(reward) else person.report(reward)))
    return sent


@pytest.mark.parametrize(
    ("policy", "problem"),
    [
        (dpb.local.LocalUCB(privacy=dpb.PureDP(1.0)), dpb.Arms(3)),
        (dpb.local.LocalUCB(privacy=dpb.GaussianDP(1.0), rewards="bounded", loglog=3.0), dpb.Arms(3)),
        (dpb.local.LocalLinUCB(privacy=dpb.GaussianDP(1.0)), dpb.LinearContexts(2)),
        (
            dpb.local.LocalCapri(privacy=dpb.GaussianDP(1.0)),
            dpb.KernelContexts.testing.example(None),
        ),
        (
            dpb.local.LocalKernelThompson(privacy=dpb.GaussianDP(1.0)),
            dpb.KernelContexts.testing.example(None),
        ),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("value", [1e300, -1e300, 1e-300, 0.0])
def test_a_message_comes_whatever_is_broadcast(
    policy: dpb.local.LocalPolicy, problem: dpb.Problem, value: float
) -> None:
    """Otherwise a broadcast decides who can answer, and silence tells about her data.

    What no messages could have led to is refused before anything is known of her.
    """
    record, refused = json.loads(policy.start(problem, seed=1).broadcast()), True
    own = dict(leaves(policy.begin(problem)[0], sent=True))
    for name, array in own.items():
        if isinstance(array, np.ndarray) and array.dtype.kind == "f":
            record["public"][name] = np.full(array.shape, value).tolist()
    with contextlib.suppress(InvalidInput):
        policy.person(problem, json.dumps(record).encode())
        refused = False
    if refused:
        return
    before = np.seterr(all="raise")
    try:
        sent = _people(policy, problem, json.dumps(record).encode())
    finally:
        np.seterr(**before)
    assert len(sent) >= 5 and all(size > 0 for size in sent)


class _Stumbles(local_ucb.Public):
    """Does not answer about a high reward where the broadcast is beyond all bounds."""

    def report(self, context: None, action: int, reward: float, noise: Noise) -> tuple[int, float]:
        message = super().report(context, action, reward, noise)
        if reward > 0.5 and not abs(float(self.mean[0])) < 1e200:
            raise OverflowError
        return message


def test_an_audit_notices_who_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = dpb.local.LocalUCB(privacy=dpb.PureDP(1.0))
    assert report_cost(policy, ARMS) <= 1.0 + 1e-9
    monkeypatch.setattr(local_ucb, "Public", _Stumbles)
    assert report_cost(policy, ARMS) == math.inf


def test_a_signal_handler_cannot_send_a_second_message() -> None:
    policy = dpb.local.LocalUCB(privacy=dpb.PureDP(1.0))
    server = policy.start(ARMS, seed=1)
    person = policy.person(ARMS, server.broadcast(), seed=1)
    person.select()
    refused = []

    class Interrupted(float):
        def __float__(self) -> float:
            for call in (person.skip, lambda: person.report(1.0), person.select):
                with pytest.raises(RoundError, match="under way"):
                    call()
                refused.append(call)
            return 1.0

    server.receive(person.report(Interrupted(1.0)))
    assert len(refused) == 3 and server.rounds == 1


# The guarantee


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_replay_and_made_up_broadcasts_cost_the_budget_and_no_more(
    policy: dpb.local.LocalPolicy,
) -> None:
    found, limit = replay(policy, rounds=16), policy.privacy.size
    assert found.passed, str(found)
    assert found.cost == pytest.approx(limit, rel=1e-9)
    assert report_cost(policy, ARMS) == pytest.approx(limit, rel=1e-9)


def test_messages_by_brute_force() -> None:
    """The law of what really leaves the device, on two rewards: log ratios up to ε and not above.

    40,000 messages of each; a log ratio has standard error 1/√(40,000·p(1−p))·√2 < 0.015, so 0.08 is
    above five of them. The control, a policy at twice the budget, is outside.
    """

    def share(policy: dpb.local.LocalPolicy, reward: float) -> float:
        public, _ = policy.begin(ARMS)
        report, noise = type(public).report, np.random.default_rng(5)
        return float(np.mean([report(public, None, 0, reward, noise)[1] for _ in range(40_000)]))

    for epsilon, private in ((0.5, True), (1.0, False)):
        policy = dpb.local.LocalUCB(privacy=dpb.PureDP(epsilon))
        one, other = share(policy, 1.0), share(policy, 0.0)
        worst = max(abs(math.log(one / other)), abs(math.log((1 - one) / (1 - other))))
        assert (abs(worst - 0.5) < 0.08) is private


class TellsTheReward(FaultyLocal):
    """The reward itself goes along, in a place the server does not look at."""

    class state(local_ucb.Public):
        def report(self, context: None, action: int, reward: float, noise: Noise) -> Any:
            return (*super().report(context, action, reward, noise), reward)

        def receive(self, message: Any) -> None:
            super().receive(message[:2])


class DoubleReport(FaultyLocal):
    """Two answers about one reward."""

    class state(local_ucb.Public):
        def report(self, context: None, action: int, reward: float, noise: Noise) -> tuple[int, float]:
            super().report(context, action, reward, noise)
            return super().report(context, action, reward, noise)


class SilentWhenMissing(FaultyLocal):
    """No coin is thrown without a reward."""

    class state(local_ucb.Public):
        def report(self, context: None, action: int, reward: float, noise: Noise) -> tuple[int, float]:
            if reward != reward:
                return action, 0.5
            return super().report(context, action, reward, noise)


@pytest.mark.parametrize("kind", [TellsTheReward, DoubleReport, SilentWhenMissing])
def test_wrong_reports_are_caught(kind: type[FaultyLocal]) -> None:
    policy = kind(privacy=dpb.PureDP(1.0))
    assert not replay(policy, rounds=16).private
    assert report_cost(policy, ARMS) > 1.01


def test_bounded_rewards_conform_too() -> None:
    check_policy(dpb.local.LocalUCB(privacy=dpb.PureDP(1.0), rewards="bounded"))


def test_the_guarantee_says_who_is_trusted() -> None:
    said = str(POLICY.guarantee(ARMS))
    assert said.startswith("Every message a person sends is 0.5-DP under replacement of one reward")


# The server


def test_the_server_has_no_method_that_takes_a_context_or_a_reward() -> None:
    methods = {name: method for name, method in inspect.getmembers(dpb.local.Server, inspect.isfunction)}
    public = {name for name in methods if not name.startswith("_")}
    assert public == {"broadcast", "receive", "released", "snapshot"}
    taken = {name for method in methods.values() for name in inspect.signature(method).parameters}
    assert not {"context", "reward", "action", "offered"} & taken
    assert inspect.signature(dpb.local.Server.receive).parameters.keys() == {"self", "message"}


@pytest.mark.parametrize("policy", POLICIES, ids=str)
def test_with_the_same_messages_the_server_is_the_same_whoever_sent_them(
    policy: dpb.local.LocalPolicy,
) -> None:
    """Two people with opposite rewards; the second one's draws are forced to the first one's results."""
    one, other = policy.start(ARMS), policy.start(ARMS)
    for index in range(30):
        recorded = RecordingNoise(np.random.default_rng(index), Steer())
        forced = ForcedNoise(recorded.draws)
        for server, noise, reward in ((one, recorded, index % 2), (other, forced, 1 - index % 2)):
            person = policy.person(ARMS, server.broadcast(), seed=index)
            person._noise = noise  # type: ignore[assignment]
            person.select()
            server.receive(person.report(float(reward)))
        assert recorded.draws[0].location != forced.draws[0].location
    assert state_bytes(one._public) == state_bytes(other._public)
    assert one.broadcast() == other.broadcast() and state_bytes(one._secret) == []


def _altered(**changes: Any) -> Callable[[bytes], bytes]:
    return lambda message: json.dumps(json.loads(message) | changes).encode()


BAD_MESSAGES: dict[str, tuple[Any, str]] = {
    "no bytes": (lambda _: 5, "expected a message as bytes, got int"),
    "no JSON": (lambda _: b"\xff\x00", "not a message of dpbandits"),
    "cut off": (lambda message: message[:-5], "not a message of dpbandits"),
    "nested": (lambda _: b"[" * 100_000, "not a message of dpbandits"),
    "a list": (lambda _: b"[1, 2]", "not a message of dpbandits"),
    "a broadcast": (_altered(kind="broadcast"), "not a message of dpbandits"),
    "a newer format": (_altered(format=2), "format 2 came; this version reads format 1"),
    "another policy": (_altered(policy={"kind": "LocalUCB"}), "is for the policy"),
    "another problem": (_altered(problem=dpb.Arms(4).to_dict()), "is for the problem"),
    "more fields": (_altered(name="Ada"), "has the fields"),
    "a round to come": (_altered(rounds=999), "after 999 messages; 20 came so far"),
    "no round": (_altered(rounds=-1), "expected rounds to be a whole number >= 0"),
    "no ticket": (_altered(ticket="x" * 32), "expected the ticket"),
    "a long ticket": (_altered(ticket="0" * 33), "expected the ticket"),
    "no content": (_altered(content=None), "an arm and an answer"),
    "three parts": (_altered(content=[0, 1.0, 0.3]), "an arm and an answer"),
    "no such arm": (_altered(content=[3, 1.0]), "expected arm to be below 3, got 3"),
    "a negative arm": (_altered(content=[-1, 1.0]), "expected arm to be a whole number"),
    "half an arm": (_altered(content=[0.5, 1.0]), "expected arm to be a whole number"),
    "a yes": (_altered(content=[0, True]), "expected answer to be a number"),
    "not a coin": (_altered(content=[0, 0.5]), "expected answer to be one of 0.0, 1.0"),
    "NaN": (lambda message: message.replace(b"1.0]", b"NaN]"), "NaN is no number"),
    "infinite": (_altered(content=[0, 10**400]), "expected answer to be one of"),
}


@pytest.mark.parametrize(("spoil", "said"), BAD_MESSAGES.values(), ids=BAD_MESSAGES)
def test_a_message_that_cannot_be_right_is_refused_and_changes_nothing(spoil: Any, said: str) -> None:
    server = served()
    # A person whose coin says 1, so that the spoilt bytes are known.
    good = next(m for m in (message_to(server) for _ in range(200)) if m.endswith(b"1.0]}"))
    before = server.broadcast()
    with pytest.raises(DPBanditsError, match=said.replace("[", r"\[")):
        server.receive(spoil(good))
    assert server.broadcast() == before and server.rounds == 20
    server.receive(good)
    assert server.rounds == 21


@pytest.mark.parametrize("answer", [41.0 * 2.0, -1e300, 10**400])
def test_a_number_that_the_noise_cannot_reach_is_refused(answer: float) -> None:
    server = served(dpb.local.LocalUCB(privacy=dpb.PureDP(0.5), rewards="bounded"))
    with pytest.raises(InvalidInput, match="within 40 scales"):
        server.receive(_altered(content=[0, answer])(message_to(server)))
    server.receive(_altered(content=[0, 79.0])(message_to(server)))


def test_a_message_counts_once_in_any_order() -> None:
    server = served()
    waiting = [message_to(server, index % 2) for index in range(10)]
    for message in reversed(waiting):
        server.receive(message)
    before = server.broadcast()
    for message in waiting:
        with pytest.raises(RoundError, match="was received already"):
            server.receive(message)
    assert server.broadcast() == before and server.rounds == 30


def test_what_is_too_old_to_be_remembered_is_refused_and_memory_is_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dpb.local.Server, "window", 8)
    server = served(rounds=3)
    used, late = message_to(server), message_to(server)
    server.receive(used)
    refused = set()
    for index in range(30):
        for message in (used,) if index < 6 else (used, late):
            try:
                server.receive(message)
            except RoundError as error:
                refused.add(str(error).split(",")[0].split(":")[0])
            else:
                assert message is late and index == 6, "only the late one, and once"
        server.receive(message_to(server))
        assert len(server._tickets) == len(server._order) <= 8
    assert len(refused) == 2  # known, then too old


def test_a_server_goes_on_from_a_broadcast() -> None:
    server = served()
    kept = server.broadcast()
    answered = message_to(server)
    again = POLICY.start(ARMS, broadcast=kept)
    assert again.rounds == 20 and again.broadcast() == kept
    for one in (server, again):
        one.receive(answered)
    assert again.broadcast() == server.broadcast()
    # Older ones may have been counted before it was kept.
    with pytest.raises(RoundError, match="too old to tell"):
        POLICY.start(ARMS, broadcast=server.broadcast()).receive(message_to(POLICY.start(ARMS)))
    for clone in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(RoundError, match=r"broadcast=server.broadcast\(\)"):
            clone(server)


def test_a_receive_that_was_cut_short_ends_the_server() -> None:
    server = served()
    message, receive = message_to(server), local_ucb.Public.receive

    def interrupt(*arguments: Any) -> None:
        receive(*arguments)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(local_ucb.Public, "receive", interrupt)
        with pytest.raises(KeyboardInterrupt):
            server.receive(message)
    for call in (server.broadcast, lambda: server.receive(message)):
        with pytest.raises(RoundError, match="was cut short"):
            call()


@dataclasses.dataclass(frozen=True, kw_only=True)
class Ending(dpb.local.LocalUCB):
    """A local policy whose guarantee ends."""

    def guarantee(self, problem: dpb.Arms) -> dpb.Guarantee:
        return dataclasses.replace(super().guarantee(problem), horizon=problem.horizon)


def test_nothing_happens_past_the_horizon() -> None:
    policy, problem = Ending(privacy=dpb.PureDP(1.0)), dpb.Arms(3, horizon=4)
    server = policy.start(problem)
    spare = message_to(server)
    for _ in range(4):
        last = server.broadcast()
        server.receive(message_to(server))
    for call in (server.broadcast, lambda: server.receive(spare)):
        with pytest.raises(HorizonReached, match="covers 4 rounds"):
            call()
    forged = json.dumps(json.loads(last) | {"rounds": 4}).encode()
    with pytest.raises(HorizonReached):
        policy.person(problem, forged)


# The person


def test_order_of_calls_of_a_person() -> None:
    person = POLICY.person(ARMS, POLICY.start(ARMS).broadcast())
    early: Callable[[], bytes]
    for early in (lambda: person.report(1.0), person.skip):
        with pytest.raises(RoundError, match=r"call select\(\) first"):
            early()
    with pytest.raises(InvalidInput, match="has no context"):
        person.select([1.0])
    assert person.select() in range(3)
    with pytest.raises(RoundError, match="has her action"):
        person.select()
    for wrong in (math.nan, "a", None):
        with pytest.raises(InvalidInput, match="expected reward to be a number"):
            person.report(wrong)
    person.report(1.0)
    for second in (lambda: person.report(1.0), person.skip, person.select):
        with pytest.raises(PrivacyError, match="has sent her message"):
            second()


def test_a_report_that_was_cut_short_is_not_drawn_again() -> None:
    person = POLICY.person(ARMS, POLICY.start(ARMS).broadcast())
    person.select()

    class Interrupted:
        def binomial(self, n: int, p: float) -> int:
            raise KeyboardInterrupt

    person._noise = Interrupted()  # type: ignore[assignment]
    with pytest.raises(KeyboardInterrupt):
        person.report(1.0)
    with pytest.raises(PrivacyError, match="has sent her message"):
        person.report(1.0)


def test_a_skipped_message_looks_like_any_other() -> None:
    server, seen = POLICY.start(ARMS), set()
    for _ in range(60):  # a fair coin shows one side only with probability 2⁻⁵⁹
        person = POLICY.person(ARMS, server.broadcast())
        person.select()
        record = json.loads(person.skip())
        assert record.keys() == json.loads(message_to(server)).keys()
        seen.add(record["content"][1])
    assert seen == {0.0, 1.0}


def test_people_draw_from_the_operating_system_unless_seeded() -> None:
    server = dpb.local.LocalUCB(privacy=dpb.PureDP(1.0), rewards="bounded").start(ARMS)
    assert message_to(server, seed=3) == message_to(server, seed=3)
    free = [json.loads(message_to(server)) for _ in range(20)]
    assert len({record["ticket"] for record in free}) == 20
    # Of 190 pairs one in some 10⁴ is equal after rounding: six of them less than once in 10¹⁰ runs.
    assert len({record["content"][1] for record in free}) > 14


def test_a_person_cannot_be_copied_pickled_forked_or_read() -> None:
    person = POLICY.person(ARMS, POLICY.start(ARMS).broadcast())
    for clone in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(PrivacyError, match="cannot be copied"):
            clone(person)
    assert repr(person) == f"<Person of {POLICY!r} on {ARMS!r}>"
    person._forks -= 1  # as in the child of a fork
    with pytest.raises(PrivacyError, match="does not survive a fork"):
        person.select()


def _public(**changes: Any) -> Callable[[bytes], bytes]:
    def alter(broadcast: bytes) -> bytes:
        record = json.loads(broadcast)
        return json.dumps(record | {"public": record["public"] | changes}).encode()

    return alter


BAD_BROADCASTS: dict[str, tuple[Any, str]] = {
    "a message": (_altered(kind="message"), "not a broadcast"),
    "another budget": (
        _altered(policy=dpb.local.LocalUCB(privacy=dpb.PureDP(50.0)).to_dict()),
        "is for the policy",
    ),
    "less noise": (_public(bias=1.0), "the broadcast says bias = 1.0, the recipe gives 0.2449"),
    "another noise": (_public(kind=1), "the broadcast says kind = 1"),
    "one arm too few": (_public(mean=[0.5, 0.5]), "expected mean of the broadcast"),
    "ragged": (_public(mean=[0.5, [0.5], 1.0]), "expected mean of the broadcast"),
    "words": (_public(mean=["a", "b", "c"]), "expected mean of the broadcast"),
    "half plays": (_public(plays=[0.5, 1, 1]), "expected plays of the broadcast"),
    "huge plays": (_public(plays=[2**70, 1, 1]), "expected plays of the broadcast"),
    "endless": (lambda b: b.replace(b'"mean": [0.0', b'"mean": [1e999'), "to be finite"),
    "more": (_public(gift=[1.0]), "expected the broadcast to state"),
    "nothing": (_altered(public=None), "expected the broadcast to state"),
}


@pytest.mark.parametrize(("spoil", "said"), BAD_BROADCASTS.values(), ids=BAD_BROADCASTS)
def test_a_broadcast_that_cannot_be_right_is_refused(spoil: Any, said: str) -> None:
    good = POLICY.start(ARMS).broadcast()
    POLICY.person(ARMS, good)
    with pytest.raises(InvalidInput, match=said):
        POLICY.person(ARMS, spoil(good))
    with pytest.raises(InvalidInput, match=said):
        POLICY.start(ARMS, broadcast=spoil(good))


def test_other_problems_and_policies_with_secrets_are_refused() -> None:
    with pytest.raises(InvalidInput, match="is for Arms"):
        POLICY.start("three arms")  # type: ignore[arg-type]

    class Hoards(dpb.local.LocalUCB):
        def begin(self, problem: dpb.Arms) -> tuple[Any, Any]:
            return super().begin(problem)[0], local_ucb.Public(*super().begin(problem)[0])

    with pytest.raises(InvalidInput, match="keeps a secret on the server"):
        Hoards(privacy=dpb.PureDP(1.0)).start(ARMS)


def test_a_policy_has_the_verbs_of_one_model() -> None:
    class Mixed(local_ucb.Public):
        def observe(self, secret: Any, context: None, action: int, reward: float) -> None: ...

    with pytest.raises(TypeError, match="Mixed has verbs of both models"):
        check_policy_verbs(Mixed)


# LocalUCB


def test_the_index_by_hand() -> None:
    policy = dpb.local.LocalUCB(privacy=dpb.PureDP(2.0), rewards="bounded", loglog=3.0)
    public, _ = policy.begin(ARMS)
    receive, select = (getattr(type(public), name) for name in ("receive", "select"))
    for message in ((0, 0.25), (0, -0.75), (1, 1.0), (2, -0.5)):
        receive(public, message)
    np.testing.assert_array_equal(public.mean, [0.25, 1.5, 0.0])
    level = math.log(5.0) + 3.0 * math.log(math.log(5.0))
    bonus = [math.sqrt(2 * (0.25 + 2 / 4) * level / n) + level / 2 / n for n in (2, 1, 1)]
    assert select(public, None, np.random.default_rng(0)) == 1
    np.testing.assert_allclose(public.score, np.add([0.25, 1.5, 0.0], bonus), rtol=1e-14)


@pytest.mark.parametrize(
    ("privacy", "rewards", "variance"),
    [
        (dpb.PureDP(math.log(3.0)), "binary", 1.0),  # c = ½
        (dpb.PureDP(0.5), "bounded", 8.25),
        (dpb.GaussianDP(0.5), "bounded", 4.25),
        (dpb.NonPrivate(), "binary", 0.25),
        (dpb.NonPrivate(), "bounded", 0.25),
    ],
)
def test_variances(privacy: dpb.Budget, rewards: Any, variance: float) -> None:
    public, _ = dpb.local.LocalUCB(privacy=privacy, rewards=rewards).begin(ARMS)
    assert public.spread == pytest.approx(math.sqrt(2.0 * variance))


@pytest.mark.parametrize("rewards", ["binary", "bounded"])
def test_without_noise_it_is_the_textbook_index(rewards: Any) -> None:
    learner = rehearse(dpb.local.LocalUCB(privacy=dpb.NonPrivate(), rewards=rewards), ARMS, seed=2)
    rng, sums, counts = np.random.default_rng(3), np.zeros(3), np.zeros(3)
    for done in range(400):
        arm = learner.select()
        if counts.min() > 0:
            score = sums / counts + np.sqrt(np.log(done + 1) / (2 * counts))
            assert score[arm] >= score.max() - 1e-8
        else:
            assert counts[arm] == 0
        reward = float(rng.random() < (0.2, 0.5, 0.8)[arm])
        learner.update(arm, reward)
        sums[arm] += reward
        counts[arm] += 1
    assert counts[2] > 200


def test_people_of_the_first_broadcast_spread_over_the_arms() -> None:
    first = POLICY.start(ARMS).broadcast()
    chosen = {POLICY.person(ARMS, first, seed=seed).select() for seed in range(40)}
    assert chosen == {0, 1, 2}


def test_the_confidence_bound_holds_as_often_as_it_says() -> None:
    """P(mean − x > bonus) ≤ e^−f: at f = 3 that is 0.0498; over 20,000 means a share above 0.06 has
    probability below 10⁻⁹. Coins and Laplace numbers about a fair reward, 30 to a mean.
    """
    f, n, rng = 3.0, 30, np.random.default_rng(0)
    for rewards in ("binary", "bounded"):
        public, _ = dpb.local.LocalUCB(privacy=dpb.PureDP(1.0), rewards=rewards).begin(ARMS)
        drawn: Any = (rng.random((20_000, n)) < 0.5) - 0.5
        answers: Any
        if rewards == "binary":
            answers = debiased(rng.binomial(1, heads(drawn, public.bias)), public.bias)
        else:
            answers = rng.laplace(drawn, public.scale)
        bonus = public.spread * math.sqrt(f / n) + public.tail * f / n
        missed = float(np.mean(-answers.mean(1) > bonus))
        assert 1e-4 < missed <= 0.06  # and is not vacuous


# Last bits


def _numbers(policy: Any, problem: Any, offered: tuple[Any, ...], reward: float) -> Any:
    broadcast, found = policy.start(problem).broadcast(), []
    for seed in range(200):
        person = policy.person(problem, broadcast, seed=seed)
        person.select(*offered)
        found.append(json.loads(person.report(reward))["content"][-1])
    return np.array(found)


@pytest.mark.parametrize("scale", [1e-12, 1e-3, 1.0, 3.0, 1e12])
def test_the_last_bits_of_a_message_tell_nothing(scale: float) -> None:
    # Without rounding, a number near 0 with bits below 2⁻⁵³ cannot be around 1: it is around 0.
    linear, contexts = dpb.local.LocalLinUCB(privacy=dpb.GaussianDP(1.0 / scale)), dpb.LinearContexts(1)
    step = rounding_step(1.5 * scale)
    for row in (0.0, 1.0):
        numbers = _numbers(linear, contexts, ([[row]],), 1.0) / step
        assert (numbers == np.rint(numbers)).all() and len(np.unique(numbers)) > 390
    for budget in (dpb.PureDP(1.0 / scale), dpb.GaussianDP(1.0 / scale)):
        arms = dpb.local.LocalUCB(privacy=budget, rewards="bounded")
        numbers = _numbers(arms, dpb.Arms(2), (), 0.5) / rounding_step(scale)
        assert (numbers == np.rint(numbers)).all() and len(np.unique(numbers)) > 190
    pairs = dpb.KernelContexts(dpb.kernels.Matern(0.2), (0.0, 1.0), (0.0, 1.0))
    for kind, reward in product((dpb.local.LocalKernelThompson, dpb.local.LocalCapri), (0.0, 1.0)):
        kernel = kind(privacy=dpb.GaussianDP(1.0 / scale))
        numbers = _numbers(kernel, pairs, (0,), reward) / rounding_step(2.0 * scale)
        assert (numbers == np.rint(numbers)).all() and len(np.unique(numbers)) > 390
