"""Agreement with the Open Bandit Pipeline's own estimators, on the sample that it ships."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from obp_without_torch import obp

import dpbandits as dpb
from dpbandits.offline import Rows, doubly_robust, ips, ridge_model, snips

CAMPAIGNS = [(log, name) for log in ("random", "bts") for name in ("all", "men", "women")]


def sample(log: str, campaign: str, at: int | None = None) -> Rows:
    path = Path(obp("dataset").__file__).parent / "obd" / log / campaign / f"{campaign}.csv"
    place: dict[str, Any] = {} if at is None else {"position": "position", "at": at}
    return dpb.offline.read(
        path, action="item_id", reward="click", propensity="propensity_score", **place
    )


def targets(rows: Rows) -> dict[str, NDArray[np.float64]]:
    """Probabilities of actions in each row: the same for all, of each her own, and close to certain."""
    chance, shape = np.random.default_rng(0), (len(rows), len(rows.labels))
    peaked = np.full(shape, 0.5 / shape[1])
    peaked[np.arange(shape[0]), chance.integers(shape[1], size=shape[0])] += 0.5
    return {
        "uniform": np.full(shape, 1.0 / shape[1]),
        "her own": chance.dirichlet(np.ones(shape[1]), size=shape[0]),
        "peaked": peaked,
    }


@pytest.mark.parametrize(("log", "campaign"), CAMPAIGNS)
def test_estimates_agree_to_nine_digits(log: str, campaign: str) -> None:
    theirs, compared = obp("ope"), 0
    for at in (None, 1, 3):
        rows = sample(log, campaign, at)
        model = ridge_model(rows)
        for decisions in targets(rows).values():
            logged: dict[str, Any] = {
                "reward": rows.rewards,
                "action": rows.actions,
                "pscore": rows.propensities,
                "action_dist": decisions[:, :, None],
            }
            try:
                ours = ips(rows, decisions), snips(rows, decisions)
            except dpb.errors.InvalidInput:
                continue  # too little overlap; how often that may be is asked below
            robust = doubly_robust(rows, decisions, model=model)
            assert robust == doubly_robust(rows, decisions)
            found = [
                theirs.InverseProbabilityWeighting().estimate_policy_value(**logged),
                theirs.SelfNormalizedInverseProbabilityWeighting().estimate_policy_value(**logged),
                theirs.DoublyRobust().estimate_policy_value(
                    **logged, estimated_rewards_by_reg_model=model[:, :, None]
                ),
            ]
            for one, other in zip((*ours, robust), found, strict=True):
                assert one.value == pytest.approx(other, abs=1e-9, rel=1e-9), one
                compared += 1
            assert found[0] != pytest.approx(found[1], rel=1e-9) or (decisions == decisions[0, 0]).all()
    assert compared >= 9


def test_decisions_agree_with_their_replay_estimator() -> None:
    """Of decisions that are fixed, IPS of their own kind on a uniform log: matched rows alone count."""
    rows = sample("random", "men")
    decisions = np.arange(len(rows)) % len(rows.labels)
    theirs = (
        obp("ope")
        .ReplayMethod()
        .estimate_policy_value(
            reward=rows.rewards,
            action=rows.actions,
            action_dist=np.eye(len(rows.labels))[decisions][:, :, None],
        )
    )
    found = snips(rows, decisions)
    assert found.value == pytest.approx(theirs, abs=1e-9)
    assert found.effective == pytest.approx((decisions == rows.actions).sum())


def test_policies_replay_on_the_random_logs() -> None:
    rows = sample("random", "men", 1)
    found = dpb.offline.replay(dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)), rows, seed=0)
    assert len(rows) / 34 * 0.6 < found.rounds < len(rows) / 34 * 1.4
    with pytest.raises(dpb.errors.InvalidInput, match="propensities are not all"):
        dpb.offline.replay(dpb.NoiseAwareIMED(privacy=dpb.PureDP(1.0)), sample("bts", "men", 1))
