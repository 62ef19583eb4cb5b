"""Natural mistakes in Python: each is one sentence that says what to write instead."""

import re
from collections.abc import Callable
from typing import Any

import pytest

import dpbandits as dpb
from dpbandits.errors import DPBanditsError

d: Any = dpb  # what is wrong here, a type checker would refuse
ARMS, PURE = dpb.Arms(5), dpb.PureDP(1.0)
APPROX, WORLD = dpb.ApproxDP(1.0, 1e-6), dpb.worlds.BernoulliArms([0.2, 0.5])
CONTEXTS, IMED = dpb.LinearContexts(3), dpb.NoiseAwareIMED(privacy=PURE)


def answered(action: Callable[[int], int], reward: Any) -> None:
    learner = IMED.start(ARMS)
    learner.update(action(int(learner.select())), reward)


def chosen(policy: dpb.TrustedPolicy, problem: dpb.Problem, *context: Any) -> Any:
    return policy.start(problem, compiled=False).select(*context)


def simulated(*positional: Any, **options: Any) -> Any:
    return d.simulate(*positional, **({"rounds": 10, "runs": 1, "progress": False} | options))


def items_rewarded(reward: Any) -> None:
    problem = dpb.MatroidBases(dpb.matroids.UniformMatroid(4, 2))
    learner = dpb.FocusedMatroidUCB(privacy=PURE).start(problem)
    learner.update(learner.select(), reward)


LINEAR = dpb.RandomizedLinUCB(privacy=APPROX)
KERNEL = dpb.KernelContexts(dpb.kernels.Matern(0.2), [0.0, 1.0], [0.0, 1.0])
MISTAKES: dict[str, tuple[Callable[[], Any], str]] = {
    "a number for a budget": (
        lambda: d.NoiseAwareIMED(privacy=1.0),
        "a budget such as PureDP(1.0), got 1.0",
    ),
    "text for a budget": (lambda: d.NoiseAwareIMED(privacy="eps=1"), "a budget such as PureDP(1.0)"),
    "a budget it cannot meet": (lambda: d.RandomizedLinUCB(privacy=PURE), "RandomizedLinUCB accepts"),
    "no privacy at all": (lambda: d.PureDP(0), "expected epsilon > 0 and finite, got 0"),
    "a negative budget": (lambda: d.PureDP(-1), "expected epsilon > 0"),
    "text for a number": (lambda: d.PureDP("1"), "expected epsilon to be a number, got '1'"),
    "delta of one": (lambda: d.ApproxDP(1, 1), "expected delta strictly between 0 and 1"),
    "means for arms": (lambda: d.Arms([0.1, 0.2]), "expected arms to be a whole number"),
    "one arm": (lambda: d.Arms(1), "expected arms to be a whole number >= 2, got 1"),
    "half an arm": (lambda: d.Arms(2.5), "expected arms to be a whole number"),
    "a number for a problem": (lambda: IMED.start(d.__dict__["Arms"]), "NoiseAwareIMED is for Arms"),
    "a world for a problem": (lambda: d.NoiseAwareIMED(privacy=PURE).start(WORLD), "give its problem"),
    "another problem": (lambda: IMED.start(CONTEXTS), "NoiseAwareIMED is for Arms, got LinearContexts"),
    "an option of another time": (
        lambda: d.arms.TreeUCB(privacy=PURE, calibration="tight"),
        "expected calibration to be one of 'exact', 'paper'",
    ),
    "no horizon": (
        lambda: dpb.arms.ModifiedThompson(privacy=dpb.GaussianDP(1.0)).start(ARMS),
        "needs the horizon",
    ),
    "an answer before a question": (
        lambda: IMED.start(ARMS).update(0, 1.0),
        "call select() or decide() first",
    ),
    "no reward": (lambda: answered(lambda a: a, float("nan")), "use skip() for a missing one"),
    "text for a reward": (lambda: answered(lambda a: a, "1"), "expected reward to be a number"),
    "another arm": (lambda: answered(lambda a: (a + 1) % 5, 1.0), "chose another action"),
    "a context for arms": (lambda: chosen(IMED, ARMS, [1, 2]), "has no context"),
    "no context": (lambda: chosen(LINEAR, CONTEXTS), "takes one thing"),
    "one action's features": (lambda: chosen(LINEAR, CONTEXTS, [1.0, 2.0, 3.0]), "got shape (3,)"),
    "half a context": (
        lambda: chosen(dpb.KernelThompson(privacy=APPROX), KERNEL, 0.5),
        "expected the context to be a whole number",
    ),
    "one reward for two items": (lambda: items_rewarded(1.0), "a list of rewards, one for each item"),
    "means in per cent": (
        lambda: d.worlds.BernoulliArms([50, 60]),
        "expected means[0] in [0, 1], got 50.0",
    ),
    "no means": (lambda: d.worlds.BernoulliArms([]), "at least 2 arms, got 0"),
    "a problem for a world": (
        lambda: simulated(d.BetaThompson(), ARMS),
        "expected an environment such as",
    ),
    "world and policy exchanged": (lambda: simulated(WORLD, d.BetaThompson()), "expected policies"),
    "no runs": (
        lambda: simulated(d.BetaThompson(), WORLD, runs=0),
        "expected runs to be a whole number",
    ),
    "a picture of another kind": (
        lambda: simulated(d.BetaThompson(), WORLD).plot("regret.bmp"),
        "expected a picture to end in .pdf, .png, .svg",
    ),
    "a save that is not there": (lambda: d.load("nothing.npz"), "there is no save file at nothing.npz"),
    "recommend for a number": (lambda: d.recommend(ARMS, 1.0), "a budget such as PureDP(1.0), got 1.0"),
    "recommend, exchanged": (lambda: d.recommend(PURE, ARMS), "expected a problem such as Arms(5)"),
    "trust in nobody known": (
        lambda: d.recommend(ARMS, PURE, trust="server"),
        "expected trust to be one of",
    ),
    "trust that does not exist here": (
        lambda: d.recommend(ARMS, PURE, trust="joint"),
        "this problem allows central or local trust, not joint",
    ),
    "nobody in particular": (
        lambda: IMED.start(dpb.Arms(3, rounds_per_person=2)).decide(),
        "say for whom",
    ),
    "no room": (lambda: IMED.start(ARMS, in_flight=0), "expected in_flight to be a whole number >= 1"),
    "a word for a seed": (lambda: d.NoiseAwareIMED(privacy=PURE).start(ARMS, seed="a"), "expected seed"),
    "another noise": (
        lambda: d.NoiseAwareIMED(privacy=PURE).start(ARMS, noise="gauss"),
        "'exact', 'float'",
    ),
    "a list for a matroid": (
        lambda: d.MatroidBases([1, 2, 3]),
        "a matroid such as UniformMatroid(5, 2)",
    ),
    "a word for a kernel": (lambda: d.KernelContexts("matern", [0.0], [0.0]), "a kernel such as"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_answered_in_one_sentence(name: str) -> None:
    make, said = MISTAKES[name]
    with pytest.raises(DPBanditsError, match=re.escape(said)) as caught:
        make()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 250


def test_the_answer_to_a_wrong_word_for_trust_is_never_a_policy_that_trusts_more() -> None:
    assert isinstance(d.recommend(ARMS, PURE, trust="local").policy, dpb.local.LocalPolicy)


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("LazyUCB", "arms"),
        ("BernoulliArms", "worlds"),
        ("Capri", "kernels"),
        ("LinearMatroid", "matroids"),
    ],
)
def test_a_name_that_is_not_flat_is_answered_with_its_place(name: str, place: str) -> None:
    with pytest.raises(AttributeError, match=re.escape(f"write dpb.{place}.{name}")):
        getattr(dpb, name)
    assert not hasattr(dpb, "NoSuchThing")
