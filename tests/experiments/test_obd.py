"""The study on open bandit data, on a small log of the same shape; the sample itself where it is."""

import dataclasses
import importlib.util
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dpbandits import GaussianDP, NonPrivate, PureDP, Trace
from dpbandits.errors import InvalidInput
from dpbandits.experiments import figure_named
from dpbandits.experiments.figure import Scale
from dpbandits.experiments.obd import setting
from dpbandits.experiments.reproduce import reproduce

pytestmark = pytest.mark.slow


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Campaigns of a few items, the last of which pays most, in the folders of the data set."""
    chance = np.random.default_rng(0)
    for campaign, items in (("all", 5), ("men", 3), ("women", 4)):
        shown = chance.integers(0, items, 3000)
        log = {
            "item_id": shown,
            "position": chance.integers(1, 4, 3000),
            "click": (chance.random(3000) < 0.02 + 0.1 * (shown == items - 1)).astype(int),
        }
        folder = tmp_path / "random" / campaign
        folder.mkdir(parents=True)
        pl.DataFrame(log).write_csv(folder / f"{campaign}.csv")
    monkeypatch.setenv(setting.DATA, str(tmp_path))
    return tmp_path


def test_worlds_are_campaigns_at_positions_and_shrunk(data: Path) -> None:
    worlds = setting.worlds()
    assert list(worlds)[:4] == ["all 1", "all 2", "all 3", "all shrunk"] and len(worlds) == 12
    assert worlds["men 2"].actions == ("0", "1", "2") and worlds["men 2"].title == "campaign men 2"
    spread = {name: max(world.arm_means()) - min(world.arm_means()) for name, world in worlds.items()}
    assert all(spread[f"{one} shrunk"] < spread[f"{one} 1"] for one in setting.CAMPAIGNS)


def test_missing_data_are_a_sentence(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figure = figure_named("obd-budgets")
    assert figure.missing() is None
    (data / "random" / "men" / "men.csv").unlink()
    assert "men.csv; set DPBANDITS_OBD to the folder" in str(figure.missing())
    monkeypatch.delenv(setting.DATA)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "pip install --no-deps obp" in str(figure.missing())
    with pytest.raises(InvalidInput, match="there are no data for this figure"):
        figure.simulations(Scale.quick)


def test_both_figures_and_their_claims(
    data: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(setting, "HORIZONS", {Scale.quick: (1000, 20_000)})
    monkeypatch.setattr(setting, "BUDGETS", (PureDP(0.1), PureDP(1.0), PureDP(4.0), GaussianDP(1.0)))
    few = {"noise-aware-imed", "private-imed", "lazy-ucb", "beta-thompson"}
    every = setting.policies

    def some(budget: object) -> dict[str, object]:
        return {name: one for name, one in every(budget).items() if name in few}  # type: ignore[arg-type]

    monkeypatch.setattr(setting, "policies", some)
    folder = tmp_path_factory.mktemp("obd")
    budgets, horizons = figure_named("obd-budgets"), figure_named("obd-horizons")
    first = reproduce(budgets, Scale.quick, folder / "budgets", progress=False)
    second = reproduce(horizons, Scale.quick, folder / "horizons", progress=False)  # traces are kept
    assert [claim.holds for claim in first.claims[:2]] == [True, True]
    assert first.claims[-1].holds  # items do differ here
    assert [claim.holds for claim in second.claims] == [True, True, False, False]
    assert "rounds, " in second.claims[-1].measured and "(women)" in second.claims[-1].measured
    assert first.rows[-1]["policy"] == "uniform play" and len(second.rows) == 4
    # The control: the same claims where privacy costs all there is.
    lost = {
        name: dataclasses.replace(trace, curves={x: _all_lost(y) for x, y in trace.curves.items()})
        if str(NonPrivate()) not in name
        else trace
        for name in budgets.simulations(Scale.quick)
        for trace in [Trace.load(folder / "budgets" / f"{name}.parquet")]
    }
    assert [claim.holds for claim in budgets.claims(lost, Scale.quick)][:3] == [False] * 3
    # And the recommendation where it loses all, and others do not.
    for trace in lost.values():
        for name in set(trace.policies) - {setting.RECOMMENDED}:
            trace.curves[name][:, :, 0] *= 1e-3
    assert [claim.holds for claim in budgets.claims(lost, Scale.quick)][3:5] == [False] * 2


def _all_lost(curves: np.ndarray) -> np.ndarray:
    lost = curves.copy()
    lost[:, :, 0] = lost[:, :, 2]
    return lost
