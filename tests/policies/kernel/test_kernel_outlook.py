"""What a user is told beforehand about kernel bandits: recommendations, warnings, costs."""

import json
import warnings

import pytest
from typer.testing import CliRunner

import dpbandits as dpb
from dpbandits.cli.main import app
from dpbandits.errors import BudgetNotAccepted, InvalidInput
from dpbandits.policies.kernel.shared import outlook
from dpbandits.policies.kernel.shared.outlook import expected_cost, learnable_share

BUDGET = dpb.ApproxDP(1.0, 1e-5)
WORLD = dpb.worlds.KernelWorld.standard()


def test_what_can_be_learned_grows_with_rounds_and_budget() -> None:
    problem = WORLD.problem(None)

    def share(rounds: int, epsilon: float, local: bool) -> float:
        policy = dpb.local.LocalKernelThompson(privacy=dpb.ApproxDP(epsilon, 1e-5))
        return learnable_share(problem, policy.deviation(problem.max_reward), rounds, local=local)

    assert share(10**4, 1.0, True) < share(10**5, 1.0, True) < share(10**6, 1.0, True)
    assert share(10**4, 0.5, True) < share(10**4, 5.0, True) < share(10**4, 5.0, False) < 1.0
    assert share(10**4, 1.0, True) < 0.25 < share(10**5, 1.0, True)
    coins = dpb.local.LocalKernelThompson(privacy=dpb.PureDP(1.0)).deviation(1.0)
    assert learnable_share(problem, coins, 10**4, local=True) > 1.5 * share(10**4, 1.0, True)


@pytest.mark.parametrize("kind", [dpb.local.LocalKernelThompson, dpb.local.LocalCapri])
def test_a_local_policy_warns_where_the_horizon_is_too_short(kind: type[dpb.local.LocalPolicy]) -> None:
    policy = kind(privacy=BUDGET)
    with pytest.warns(UserWarning, match=r"10,000 rounds can explain only .* About [0-9,]+ rounds"):
        policy.start(WORLD.problem(10**4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        policy.start(WORLD.problem(10**6))
        policy.start(WORLD.problem(None))


def test_recommendations() -> None:
    found = dpb.recommend(WORLD.problem(None), BUDGET)
    assert found.policy == dpb.KernelThompson(privacy=BUDGET)
    local = dpb.recommend(WORLD.problem(10**6), BUDGET, trust=dpb.Trust.LOCAL)
    # Stronger than what was asked for, and with less noise; not where Gaussian noise is the smaller one.
    assert local.policy == dpb.local.LocalKernelThompson(privacy=dpb.PureDP(1.0))
    assert "But" not in local.reason and "one bit" in local.reason
    for budget in (dpb.GaussianDP(1.0), dpb.ApproxDP(8.0, 0.1)):
        same = dpb.recommend(WORLD.problem(10**6), budget, trust=dpb.Trust.LOCAL)
        assert same.policy == dpb.local.LocalKernelThompson(privacy=budget)
    short = dpb.recommend(WORLD.problem(10**3), BUDGET, trust=dpb.Trust.LOCAL)
    assert "expect little better than uniform play" in short.reason
    dial = dpb.recommend(WORLD.problem(None), BUDGET, kind=dpb.kernels.Capri)
    assert (
        isinstance(dial.policy, dpb.kernels.Capri)
        and dial.policy.width < 1.0
        and "heuristic" in dial.reason
    )
    assert dpb.kernels.Capri(privacy=BUDGET).width == 1.0
    assert isinstance(dpb.recommend(WORLD.problem(None), dpb.NonPrivate()).policy, dpb.KernelUCB)
    local = dpb.recommend(WORLD.problem(None), dpb.NonPrivate(), trust=dpb.Trust.LOCAL)
    assert isinstance(local.policy, dpb.local.LocalPolicy)  # nobody may hold raw data
    with pytest.raises(BudgetNotAccepted, match="ApproxDP"):
        dpb.recommend(WORLD.problem(None), dpb.PureDP(1.0))
    for problem, kind in ((WORLD.problem(None), dpb.KernelUCB), (dpb.Arms(3), dpb.arms.UCB1)):
        with pytest.raises(InvalidInput, match="no"):
            dpb.recommend(problem, BUDGET, kind=kind)


def test_expected_cost_does_not_grow_with_rounds_but_for_the_rounds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(outlook, "_seconds_a_flop", lambda: 1e-10)  # a busy machine would vary
    few, many = (expected_cost(WORLD.problem(None), rounds) for rounds in (10**4, 10**6))
    assert few.megabytes == many.megabytes < 50
    assert many.seconds - few.seconds < 1.0
    assert "MB a run" in str(few)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, list(arguments), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def test_the_command_line_knows_kernel_bandits() -> None:
    rows = {row["policy"]: row for row in json.loads(run("list", "--json"))}
    assert rows["capri"]["trust"] == "joint" and rows["local-capri"]["trust"] == "local"
    assert rows["kernel-thompson"]["problem"] == "KernelContexts"
    assert "copies" in run("show", "capri")
    quick = ("--no-simulation", "--json")
    said = json.loads(
        run("recommend", "--kernel", "matern", "--contexts", "3", "--actions", "4", *quick)
    )
    assert said["policy"]["kind"] == "KernelThompson"
    said = json.loads(run("recommend", "--kernel", "matern", "--trust", "local", *quick))
    assert said["policy"]["kind"] == "LocalKernelThompson"
    table = run(
        *("compare", "local-capri", "kernel-thompson", "--env", "kernel-world"),
        *("--privacy", "eps=1,delta=1e-5", "--rounds", "1500", "--runs", "1", "--no-twins"),
    )
    assert "MB a run" in table and "expect little better than uniform play" in " ".join(table.split())
    assert "(1, 1e-5)-DP" in table and "none:" not in table
