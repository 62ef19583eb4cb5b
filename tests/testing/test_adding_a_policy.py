"""CONTRIBUTING's promise: one new file and one name make a policy appear everywhere."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dpbandits

pytestmark = pytest.mark.slow

TOY = '''"""A toy that plays at random: the smallest policy there is."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpbandits.engine import Chance, Noise
from dpbandits.policies.trusted import TrustedPolicy
from dpbandits.privacy.budgets import GaussianDP
from dpbandits.privacy.guarantees import Guarantee, Trust, Unit
from dpbandits.problems.arms import Arms, centred


class Secret(NamedTuple):
    total: NDArray[np.float64]


class Public(NamedTuple):
    count: NDArray[np.int64]
    released: NDArray[np.float64]
    arms: int
    mu: float

    def release(self, secret: Secret, noise: Noise) -> None:
        if self.count[0] == 20:
            self.released[0] = noise.normal(secret.total[0], 1.0 / self.mu)

    def select(self, context: None, explore: Chance) -> int:
        return int(explore.random() * self.arms)

    def observe(self, secret: Secret, context: None, action: int, reward: float) -> None:
        self.count[0] += 1
        if self.count[0] <= 20:
            secret.total[0] += centred(reward)


@dataclass(frozen=True, kw_only=True)
class ToyPlayer(TrustedPolicy):
    """Play at random, and release one sum for show.

    **Definition.** Uniform.

    **Guarantee.** One release of the first 20 rewards with noise 1/mu.

    **Regret.** Linear.
    """

    problem_kind: ClassVar = Arms
    accepts: ClassVar = (GaussianDP,)
    paper: ClassVar[str] = "none: a toy"

    def begin(self, problem: Arms) -> tuple[Any, Any]:
        public = Public(np.zeros(1, np.int64), np.zeros(1), problem.arms, self.privacy.to_gaussian().mu)
        return public, Secret(np.zeros(1))

    def guarantee(self, problem: Arms) -> Guarantee:
        return Guarantee(budget=self.privacy, unit=Unit.REWARD, trust=Trust.CENTRAL)

    def plays_uniform_below(self, problem: Arms) -> int:
        return 10**12
'''


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A copy of the package with the toy in it, and the environment to run it in."""
    folder = tmp_path_factory.mktemp("copy")
    package = folder / "dpbandits"
    shutil.copytree(
        Path(dpbandits.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__")
    )
    (package / "policies/arms/toy_player.py").write_text(TOY)
    listed = package / "policies/arms/__init__.py"
    text = listed.read_text()
    text = text.replace(
        "\n__all__ = [", "\nfrom dpbandits.policies.arms.toy_player import ToyPlayer\n\n__all__ = ["
    )
    listed.write_text(text.replace("__all__ = [", '__all__ = ["ToyPlayer", '))
    return os.environ | {"PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}


def run(environment: dict[str, str], *arguments: str) -> str:
    command = [sys.executable, "-W", "error", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_list_and_show(copy: dict[str, str]) -> None:
    listed = json.loads(run(copy, "-m", "dpbandits", "list", "--json"))
    assert {"toy-player", "modified-thompson"} <= {row["policy"] for row in listed}
    assert "Play at random" in run(copy, "-m", "dpbandits", "show", "toy-player")


def test_compare(copy: dict[str, str]) -> None:
    # Without names, so that the new policy must be found by its budget.
    small = ("--privacy", "mu=1", "--rounds", "2000", "--runs", "2", "--json")
    out = run(copy, "-m", "dpbandits", "compare", *small)
    rows = {row["policy"]: row for row in json.loads(out)["rows"]}
    assert rows["toy-player"]["guarantee"] == "1-GDP"
    assert rows["toy-player"]["mean_regret"] > 300


def test_the_conformance_suite_and_the_public_names(copy: dict[str, str]) -> None:
    script = (
        "import dpbandits as dpb; from dpbandits.policies import policy_kinds;"
        "from dpbandits.testing import check_policy, example_policies;"
        "assert policy_kinds()['toy-player'] is dpb.arms.ToyPlayer and 'ToyPlayer' in dpb.arms.__all__;"
        "[check_policy(policy) for policy in example_policies(dpb.arms.ToyPlayer)]; print('conforms')"
    )
    assert run(copy, "-c", script).strip() == "conforms"
