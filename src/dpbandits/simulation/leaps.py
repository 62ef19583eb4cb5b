"""What can be played in leaps (`leap_rounds` in `engine/loop.py`)."""

from dpbandits.engine import has_pauses, knows_ahead, pays_many
from dpbandits.errors import InvalidInput
from dpbandits.policies import Policy
from dpbandits.problems import Problem
from dpbandits.worlds import Environment


def world_can_leap(environment: Environment) -> bool:
    """Whether a world can pay many rewards by one draw."""
    return pays_many(type(environment.world()))


def policy_can_leap(policy: Policy, problem: Problem) -> bool:
    """Whether a policy says for how long it will play an arm, and plays without pauses."""
    public = policy.begin(problem)[0]
    return knows_ahead(type(public)) and not has_pauses(public)


def check_can_leap(label: str, policy: Policy, problem: Problem, environment: Environment) -> None:
    """Refuse a world that pays round by round, and a policy that may choose anew in any round."""
    if not world_can_leap(environment):
        raise InvalidInput(
            f"{environment.name()} cannot be played in leaps: it has no draw for the sum of many rewards"
        )
    if not policy_can_leap(policy, problem):
        raise InvalidInput(
            f"{label} cannot be played in leaps: it does not say for how long it will play an arm"
        )


def check_leap_device(device: str) -> None:
    """Refuse leaps on a GPU."""
    if device == "cuda":
        raise InvalidInput('leaps are played on the processor, not with device="cuda"')
