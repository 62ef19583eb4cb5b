"""What an audit found, as text that a reviewer can file."""

import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import numba
import numpy as np

from dpbandits.audit.battery import Check, Control
from dpbandits.audit.sampling import CHOICES, PUBLIC, Sampled
from dpbandits.policies import Policy
from dpbandits.version import __version__

_HEAD = (
    "| policy | claim | shown | share | by choices alone | runs | error rate | form |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
)
_HOW = """
**How.** Two scripted streams of people that differ in one person are played many times, on fresh noise
every time. An adversary who knows both scripts fits scores to some runs, chooses an event (a score
beyond a threshold) on others, and counts it on the rest. Clopper–Pearson bounds for the two counts give
a lower bound for ε (at the claimed δ) or μ. Which streams are played is chosen beforehand, on
simulated runs of other seeds. The adversary sees the choices alone, or all that is public: choices and
the released state after every round (for people and servers of the local model, the messages). Each has
half the error rate. In the joint and local models the replaced person's own choice is not looked at.

**What it means.** A bound above the claim refutes it; that happens by chance with at most the error
rate. A bound below it is no proof of privacy; the share of the claim shown says how sharp the test was.

**Forms.** `simulated`: the compiled loop, on generators that continue from run to run and floating-point
noise; hundreds of thousands of runs. `plain`, `compiled`, `reloaded` (saved and loaded halfway), `local`
(people and a server): learners, each on generators of its own; fewer runs. Exact noise is replayed, and
its samplers are tested by themselves.

**What cannot be seen.** Streams that were not tried. Events rarer than about ten in all runs. The last
bits of numbers, timing, logs and save files. In simulated runs, how generators are seeded: those
continue from run to run. The exact cost of every release is what `dpbandits audit` without sampling
finds.
"""


READING = (
    "worst: which replacement cost most. 'People mixed, noise as drawn, round 3 replaced by a person of "
    "reward 1' reads: in a stream of all sorts of people, with the noise as it came from the generator, "
    "the person of round 3 was replaced by one whose reward is 1. Noise may also be pushed up or down: "
    "a guarantee holds for every result of it."
)
CONTROLS = (
    "Controls: other policies of the same problem that are wrong on purpose. The audit must catch each."
)
_REPLAYED = """
**How.** A learner serves a stream of people; every draw of noise is recorded with its location, scale
and result. On a neighbouring stream, with one person replaced (or two, where that is said), the recorded
results are forced. Then everything that could be seen must be equal bit for bit, and what the locations
moved by, in units of the noise, is the exact cost of all releases: it must be within the claim for every
neighbour. Results are also pushed to where they cost most. "What is recorded is what is executed" plays
the same people with real generators, plain and compiled, and compares all bits.

**The checks.** Replays are of small problems. Where bounds on features or rewards are declared, they
are not 1, so that a forgotten one shows. Batches are made short, so that several end within a short
stream: an option of the same policy at the same budget, which the first check makes sure of. The last
check plays the policy as configured.

**What it means.** A cost above the claim, or anything seen that differs, refutes it for certain: there
is no error rate. On streams that were not tried the proof in the policy's docstring is all there is.

**What cannot be seen.** Whether a generator is what it should be (`--sampling` looks at that), timing,
logs, and anything outside the learner.
"""


def verdict(kept: bool) -> str:
    """What an audit ends with: never more than it can know."""
    return "nothing found against the claim" if kept else "FAILED"


def made_by(command: str, seed: int) -> str:
    """When, how and on what an audit was made, as a list."""
    facts = {
        "Date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "Command": f"`{command}`",
        "Seed": seed,
        "Versions": f"dpbandits {__version__}, Python {platform.python_version()}, "
        f"NumPy {np.__version__}, Numba {numba.__version__}",
        "Platform": platform.platform(),
    }
    return "".join(f"- {name}: {fact}\n" for name, fact in facts.items())


def replay_report(
    title: str,
    policy: Policy,
    guarantee: object,
    found: Sequence[Check],
    caught: Sequence[Control],
    command: str,
) -> str:
    """A page about the replays of a policy and the controls."""
    kept = all(one.passed for one in found) and all(one.caught for one in caught)
    said = f"**{verdict(kept).capitalize()}**"
    said += "." if caught else "; no policies that are wrong on purpose were run beside it."
    lines = [f"# Audit of {title}\n\n{said}\n\n{made_by(command, 0)}\n"]
    lines.append(f"Recipe: `{policy!r}`\n\nClaimed: {guarantee}\n\n")
    lines.append("| check | passed | found |\n|---|---|---|\n")
    lines += [f"| {one.title} | {'yes' if one.passed else 'NO'} | {one.said} |\n" for one in found]
    lines.append(f"\n{READING}\n")
    if caught:
        lines.append(f"\n{CONTROLS}\n\n| control | caught | by |\n|---|---|---|\n")
        lines += [f"| {one.wrong} | {'yes' if one.caught else 'NO'} | {one.by} |\n" for one in caught]
    return "".join(lines) + _REPLAYED


def report(found: Sequence[Sampled], command: str) -> str:
    """A page: what was checked, how, error rates, what cannot be seen."""
    lines = [f"# Sampling audit\n\n{made_by(command, found[0].seed)}"]
    for one in found:
        lines.append(f"\n**{one.policy}**, claimed: {_claim(one.to_dict()['claim'])}; {one}.\n")
        lines += [
            f"- {view}: {one.claim.unit} ≥ {shown.bound:.4g}, {shown.runs:,} runs counted; "
            f"streams: {shown.design}\n"
            for view, shown in one.views.items()
        ]
    return "".join(lines) + _HOW


def table(found: Sequence[Sampled]) -> str:
    """A line for each."""
    return rows([one.to_dict() for one in found])


def rows(found: Sequence[dict[str, Any]]) -> str:
    """The same of results that were stored."""
    return _HEAD + "".join(_row(one) for one in found)


def _row(one: dict[str, Any]) -> str:
    views = one["views"]
    choices = f"{views[CHOICES]['bound']:.2f}" if CHOICES in views else ""
    return (
        f"| `{one['policy']}` | {_claim(one['claim'])} | {one['shown']:.3f} | {one['share']:.0%} | "
        f"{choices} | {one['runs']:,} | {one['error']:g} | {one['form']} |\n"
    )


def _claim(claim: dict[str, Any]) -> str:
    at = f", δ = {claim['delta']:g}" if claim["delta"] else ""
    return f"{claim['unit']} = {claim['size']:.4g}{at}"


def page(found: Sequence[dict[str, Any]], notice: str) -> str:
    """The documentation's page about stored results."""
    sharp = sum(one["share"] >= 0.8 for one in found)
    above = [one["policy"] for one in found if not one["kept"]]
    seeds = sorted({one["seed"] for one in found})
    return (
        f"# Auditing by sampling\n\n{notice}{_INTRODUCTION}{_HOW}\n"
        f"**Results.** {len(found)} audits, {len(above)} with a bound above the claim, {sharp} that "
        f"show at least 80 % of it.\nMade by `dpbandits audit all --sampling --runs 4e5 --seed "
        f"{', '.join(map(str, seeds))} --store docs/sampling.json`, a seed that no design was tried on "
        f"before; the error rate is that of one audit.\n\n{rows(found)}{_LOWER}"
    )


_INTRODUCTION = """\
`dpbandits audit NAME` replays a policy: the exact cost of its releases, in plain Python and with
generators of the audit's own. `dpbandits audit NAME --sampling` looks at what is executed.
"""
_LOWER = f"""
Where less is shown than claimed:

- Under ε-DP a bound needs the ratio of two counts, and the last tenths need more runs.
- Trees share a budget between levels, and linear ones under ε-DP between coordinates too. All of it
  shows in the product of many Laplace draws only, which is rare; and the pair of people tried for
  linear policies is the one that costs most with Gaussian noise.
- Block-factorized sums show all of their μ only once a whole block is released.
- Matroid policies pay for all items of a basis at once. Why the streams tried show only about two
  thirds of that for some of them is not known; other streams may show more.
- Kernel policies stop for plain Python at every epoch, so they are played 20 times less, and in the
  joint and local models it is not seen which action was hers, on which the direction of her part
  depends.
- "{CHOICES}" are blunt where several noisy numbers are compared: the noise of both hides the one that
  matters, and batches of some policies are too long to show in few rounds. "{PUBLIC}" is what a
  guarantee is about, since `released()` may be read.
"""
