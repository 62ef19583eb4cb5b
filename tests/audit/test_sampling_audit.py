"""Sampling refutes runs that are wrong, also where replay cannot see it, and no claim that holds.

Every bound here is made at an error rate of 10⁻⁶, so a sound policy fails once in a million changes of
what is drawn. All seeds are fixed.
"""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from typer.testing import CliRunner

import dpbandits as dpb
from dpbandits.audit import replay
from dpbandits.audit.adversary import Claim, best_event, innovations, logistic
from dpbandits.audit.broken_sampling import BROKEN_RUNS, UNSEEN_BY_REPLAY, BrokenRun
from dpbandits.audit.filing import page
from dpbandits.audit.playing import player
from dpbandits.audit.sampling import CHOICES, PUBLIC, sample
from dpbandits.audit.scripts import Design
from dpbandits.cli.main import app
from dpbandits.errors import AuditError
from dpbandits.policies.testing import short_form

pytestmark = pytest.mark.slow

ERROR = 1e-6
RUNS = {"simulated": 40_000, "plain": 1200, "compiled": 400, "reloaded": 400}


def _design(policy: dpb.Policy, rounds: int = 6) -> Design:
    rewards = np.full((2, rounds, 2), 0.5)
    rewards[0, 0], rewards[1, 0] = 0.0, 1.0
    return Design("short", policy, dpb.Arms(2, horizon=rounds), rewards)


# Arms are tried in their order, so that a change of one reward is looked for in the right place.
IMED = dpb.arms.PrivateIMED(privacy=dpb.PureDP(1.0), first_batch=1)


@pytest.mark.parametrize("control", BROKEN_RUNS, ids=lambda control: control.wrong)
def test_every_broken_run_is_caught(control: BrokenRun) -> None:
    found = control.sample(RUNS[control.form], ERROR)
    assert not found.kept, str(found)


@pytest.mark.parametrize("control", UNSEEN_BY_REPLAY, ids=lambda control: control.wrong)
def test_replay_passes_what_only_sampling_sees(control: BrokenRun) -> None:
    assert replay(short_form(control.policy), dpb.Arms(3, horizon=24), rounds=24).passed


@pytest.mark.parametrize("form", ["simulated", "plain", "compiled", "reloaded"])
def test_sound_runs_are_not_refuted(form: str) -> None:
    options = {"form": form, "error": ERROR, "designs": [_design(IMED)], "views": (PUBLIC,)}
    found = sample(IMED, runs=RUNS[form], **options)  # type: ignore[arg-type]
    least = 0.8 if form == "simulated" else 0.0  # the others are slow, so they are few
    assert found.kept and found.share >= least, str(found)


def test_people_and_servers_are_sampled_too() -> None:
    policy = dpb.local.LocalUCB(privacy=dpb.PureDP(1.0))
    design = _design(policy, 1)
    options = {"form": "local", "error": ERROR, "designs": [design], "views": (PUBLIC,)}
    found = sample(policy, runs=1600, **options)  # type: ignore[arg-type]
    assert found.kept and found.share > 0.3, str(found)
    with pytest.raises(AuditError, match="not a local policy"):
        sample(IMED, form="local")


def test_choices_alone_show_most_of_the_claim() -> None:
    policy = short_form(dpb.arms.PrivateIMED(privacy=dpb.PureDP(1.0)))
    found = sample(policy, runs=100_000, designs=[_design(policy, 12)], views=(CHOICES,), error=ERROR)
    assert found.kept and found.share > 0.6, str(found)


def test_all_forms_play_the_same_runs() -> None:
    policy = dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0), first_batch=1, block=1)
    design, seed = _design(policy), np.random.SeedSequence(3)
    looks = list(range(6))
    plain = player(design, 1, "plain")(20, seed, looks)
    compiled = player(design, 1, "compiled")(20, np.random.SeedSequence(3), looks)
    assert (plain.chosen == compiled.chosen).all() and (plain.numbers == compiled.numbers).all()
    child = np.random.SeedSequence(3).spawn(1)[0]
    simulated = player(design, 1, "simulated")(1, child, looks)
    assert (simulated.chosen[0] == plain.chosen[0]).all()
    assert (simulated.numbers[0] == plain.numbers[0]).all()


@pytest.mark.parametrize(
    ("budget", "unit"),
    [(dpb.PureDP(0.7), "ε"), (dpb.GaussianDP(0.7), "μ"), (dpb.ZeroConcentratedDP(0.05), "ε")],
)
def test_bounds_hold_as_often_as_they_say(budget: dpb.Budget, unit: str) -> None:
    # A mechanism that spends its budget exactly, so that the truth is known: at an error rate of 0.1, of
    # 400 bounds no more than 75 may be too high (binomial tail below 10⁻⁶).
    claim = Claim.of(budget)
    assert claim.unit == unit
    rng, one = np.random.default_rng(1), 0.1
    if unit == "μ":
        other = float(stats.norm.cdf(stats.norm.ppf(one) + claim.size))
    else:
        other = math.exp(claim.size) * one + claim.delta
    counts = rng.binomial(2000, other, 400), rng.binomial(2000, one, 400)
    bounds = claim.shown(*counts, 2000, 0.1)
    assert np.count_nonzero(bounds > claim.size) <= 75
    assert bounds.mean() > 0.5 * claim.size
    # The control: estimates without bounds are too high about half the time.
    naive = claim.shown(*counts, 2000, 1.0)
    assert np.count_nonzero(naive > claim.size) > 75


def test_the_logistic_rule_finds_the_direction_that_tells_most() -> None:
    rng = np.random.default_rng(2)
    mix = np.array([[1.0, 0.0, 0.0], [0.9, 0.5, 0.0], [0.0, 0.0, 1.0]])
    one, other = (rng.normal(size=(20_000, 3)) for _ in range(2))
    other[:, 1] += 1.0  # seen only in the sum of two numbers, of which the first has most of the noise
    rule = logistic(one @ mix.T, other @ mix.T)
    assert rule[0] / rule[1] == pytest.approx(-0.9, abs=0.1) and abs(rule[2] / rule[1]) < 0.1
    features = innovations(one @ mix.T, other @ mix.T)
    assert features(one @ mix.T).shape == (20_000, 2)  # one innovation, and clipped


def test_nothing_is_shown_where_nothing_differs() -> None:
    # An event is chosen on other runs than it is counted on. The control counts on the same runs.
    rng, claim = np.random.default_rng(3), Claim("ε", 1.0)
    one, other, later, again = rng.normal(size=(4, 200, 300))
    _, event = best_event(one, other, claim, 0.5)
    assert event.shown(later, again, claim, ERROR) == 0.0
    assert event.shown(one, other, claim, 0.5) > 0.0


def test_the_command_line_files_a_report(tmp_path: Path) -> None:
    report, store = tmp_path / "audit.md", tmp_path / "audit.json"
    command = ["audit", "local-ucb", "--privacy", "eps=1", "--sampling", "--runs", "4e3", "--json"]
    written = ["--report", str(report), "--store", str(store)]
    done = CliRunner().invoke(app, [*command, *written])
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)
    assert row["claim"] == {"unit": "ε", "size": 1.0, "delta": 0.0} and row["kept"]
    assert json.loads(store.read_text()) == [row]
    assert "What cannot be seen" in report.read_text() and "local-ucb" in page([row], "")
    for wrong in (["--runs", "many"], ["--form", "other"], ["--report", str(tmp_path)]):
        assert CliRunner().invoke(app, [*command, *wrong]).exit_code != 0
