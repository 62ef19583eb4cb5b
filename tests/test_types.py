"""What users write type-checks strictly: the README, the examples of all policies, and what they see."""

import doctest
import inspect
import re
from collections import defaultdict
from pathlib import Path

import pytest
from mypy import api

from dpbandits.policies import policy_kinds

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]

SEEN = """
from typing import Any, assert_type

import numpy as np

import dpbandits as dpb
from dpbandits.arms import LazyUCB

budget = assert_type(dpb.PureDP(1.0), dpb.PureDP)
assert_type(budget.epsilon, float)
assert_type(dpb.GaussianDP(1.0).implies(dpb.ApproxDP, delta=1e-6), dpb.ApproxDP)

policy = assert_type(dpb.arms.LazyUCB(privacy=budget), LazyUCB)
learner = assert_type(policy.start(dpb.Arms(3), seed=np.int64(1)), dpb.Learner)
assert_type(learner.select(), Any)
assert_type(learner.decide(), dpb.Ticket)
assert_type(learner.released(), dpb.Released | None)
assert_type(learner.guarantee, dpb.Guarantee)
assert_type(dpb.load("learner.dpb"), dpb.Learner)

for means in ([0.1, 0.2], (0.1, 0.2), np.array([0.1, 0.2])):
    world = assert_type(dpb.worlds.BernoulliArms(means), dpb.worlds.BernoulliArms)
    assert_type(dpb.simulate([policy, dpb.BetaThompson()], world, rounds=10), dpb.Trace)

local = dpb.local.LocalUCB(privacy=dpb.PureDP(1.0))
server = assert_type(local.start(dpb.Arms(3)), dpb.local.Server)
person = assert_type(local.person(dpb.Arms(3), server.broadcast()), dpb.local.Person)
assert_type(person.report(1.0), bytes)

chosen = dpb.recommend(dpb.Arms(3), budget)
assert_type(chosen.policy.start(dpb.Arms(3)), dpb.Learner)
chosen_local = dpb.recommend(dpb.Arms(3), budget, trust=dpb.Trust.LOCAL)
assert_type(chosen_local.policy.start(dpb.Arms(3)), dpb.local.Server)
"""

# Each must be found, or a check that finds nothing says nothing.
WRONG = {
    'dpb.PureDP("one")': "arg-type",
    "dpb.PureDP(1.0).mu": "attr-defined",
    "dpb.worlds.BernoulliArms(0.1)": "arg-type",
    "dpb.arms.LazyUCB(dpb.PureDP(1.0))": "call-arg",
    "dpb.arms.LazyUCB(privacy=1.0)": "arg-type",
    "dpb.local.LocalUCB(privacy=dpb.PureDP(1.0)).start(dpb.Arms(3)).update(0, 1.0)": "attr-defined",
    "dpb.LazyUCB": "attr-defined",
    "def untyped(): return dpb": "no-untyped-def",
}


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / page).read_text(), re.DOTALL)


def as_written(example: str) -> str:
    """An example of a policy as a program: it is shown without the imports of public names."""
    folders = ("policies.arms", "policies.linear", "policies.matroid", "policies.kernel", "problems")
    imports = "".join(f"from dpbandits.{folder} import *\n" for folder in folders)
    return f"from dpbandits import *\n{imports}\n{doctest.script_from_examples(example)}"


def codes_by_file(programs: dict[str, str], folder: Path) -> dict[str, set[str]]:
    """The kinds of error in each program, by a single run with the settings of the project."""
    for name, program in programs.items():
        (folder / f"{name}.py").write_text(program)
    said, failed, _ = api.run(["--no-pretty", *(str(folder / f"{name}.py") for name in programs)])
    assert not failed, failed
    print(said)  # shown where a test fails
    found = defaultdict(set)
    for path, code in re.findall(r"^(.*?):\d+: error: .*\[([\w-]+)\]$", said, re.MULTILINE):
        found[Path(path).stem].add(code)
    return found


def test_what_users_write_type_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)  # where mypy finds its settings and what it remembers
    documented = (inspect.getdoc(kind) or "" for kind in policy_kinds().values())
    examples = [text[text.index(">>>") :] for text in documented if ">>>" in text]
    pages = ["README.md", "docs/start.md", "docs/choosing-epsilon.md"]
    pages += [f"docs/tutorials/{path.name}" for path in (ROOT / "docs/tutorials").glob("*.md")]
    assert len(examples) > 40
    programs = {
        **{re.sub(r"\W", "_", page): "\n".join(blocks(page)) for page in pages},
        "own_data": blocks("docs/own-data.md")[0],
        **{f"policies_{number}": as_written(example) for number, example in enumerate(examples)},
        **{f"wrong_{number}": f"import dpbandits as dpb\n{line}\n" for number, line in enumerate(WRONG)},
        "wrong_example": as_written('>>> KLUCB(loglog="three")'),
        "seen": SEEN,
    }
    wrong = {f"wrong_{number}": {code} for number, code in enumerate(WRONG.values())}
    assert codes_by_file(programs, tmp_path) == wrong | {"wrong_example": {"arg-type"}}
