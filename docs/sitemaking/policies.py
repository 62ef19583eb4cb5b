"""A page for each policy, grouped by what they decide about."""

from dpbandits.cli.list import GROUPS, row
from dpbandits.policies import Policy
from dpbandits.privacy.budgets import ApproxDP, Budget, PureDP
from dpbandits.problems import Arms, LinearContexts, MatroidBases, Problem, UniformMatroid
from dpbandits.recommend import recommend
from sitemaking.measured import Row, leaderboard_rows, measured, measured_table
from sitemaking.reference import class_entry, first_sentence, markdown, options_table

# What is asked for at the top of a family's page.
ASKED: dict[str, tuple[Problem, Budget]] = {
    "arms": (Arms(5), PureDP(1.0)),
    "linear": (LinearContexts(5), ApproxDP(1.0, 1e-6)),
    "matroids": (MatroidBases(UniformMatroid(10, 3)), PureDP(1.0)),
}
FAMILIES = {
    "arms": "Policies for arms",
    "linear": "Policies for features",
    "matroids": "Policies for sets",
    "kernels": "Policies for smooth rewards",
}


def policy_pages(whole: str) -> dict[str, str]:
    """By path: an index, a page for each family, a page for each policy."""
    rows = leaderboard_rows(whole)
    pages = {"reference/policies/index.md": _index()}
    for family, title in FAMILIES.items():
        module = GROUPS[family][0]
        kinds = [getattr(module, name) for name in module.__all__]
        pages[f"reference/policies/{family}.md"] = _family(title, kinds, _recommended(family))
        for kind in kinds:
            pages[f"reference/policies/{kind.name()}.md"] = policy_page(family, kind, rows)
    return pages


def policy_page(family: str, kind: type[Policy], rows: list[Row]) -> str:
    """What it does, what it promises, what was measured, its options."""
    name, told = kind.name(), row(kind.name(), kind)
    budgets = ", ".join(f"`{budget.__name__}`" for budget in kind.accepts)
    return (
        f"# {kind.__name__}\n\n"
        f"`dpb.{family}.{kind.__name__}`, on the command line `{name}` · {kind.paper} · for "
        f"`{told['problem']}` · accepts {budgets} · trust: {told['trust']} · horizon "
        f"{'needed' if kind.needs_horizon else 'not needed'} · guarantee {told['guarantee']}\n\n"
        f"## What it does\n\n{markdown(kind)}\n\n"
        f"## Options\n\n{options_table(kind, name)}\n"
        f"## Measured regret\n\n{_measured(name, rows)}\n"
        f"## Signature\n\n{_signature(family, kind)}"
    )


def _signature(family: str, kind: type[Policy]) -> str:
    """The entry that the index and the search know it by; all that it says is above."""
    head = class_entry(f"dpbandits.{family}", kind.__name__, kind).split("\n\n", 1)[0]
    about = "As every policy it has the methods of [Policy](#dpbandits.Policy): `start`, `guarantee`, …"
    return f"{head}\n\n{about}\n:::::\n"


def _measured(name: str, rows: list[Row]) -> str:
    when, mine = measured(name, rows)
    if not mine:
        return (
            "No leaderboard has this policy yet. `dpbandits compare` measures it on a world of yours.\n"
        )
    board = mine[0].board
    page = f"../../reproduction/{board}.md#{board}"
    note = "" if when == "at ε = 1" else f" The board has it {when}."
    return (
        f"From the [{board}]({page}), which says what the worlds and the numbers of rounds are, and "
        "compares all policies of the family. A cell is the mean ± its standard error (the worst run), "
        f"and in brackets the same policy without privacy where there is one.{note}"
        f"\n\n{measured_table(mine)}"
    )


def _recommended(family: str) -> str:
    """Which one to take at ε = 1, as `dpb.recommend` says it."""
    if family not in ASKED:
        return ""
    problem, budget = ASKED[family]
    found = recommend(problem, budget)
    kind = type(found.policy)
    return (
        f"**Which one?** At {budget} `dpb.recommend` names [{kind.__name__}]({kind.name()}.md): "
        f"{found.reason}\n\n"
    )


def _family(title: str, kinds: list[type[Policy]], recommended: str) -> str:
    lines = "".join(
        f"| [{kind.__name__}]({kind.name()}.md) | {first_sentence(kind)} | "
        f"{', '.join(told['privacy']) or 'none'} | {told['guarantee']} |\n"
        for kind in kinds
        for told in [row(kind.name(), kind)]
    )
    tree = "\n".join(kind.name() for kind in kinds)
    return (
        f"# {title}\n\n{recommended}"
        f"| policy | | budgets | guarantee |\n| --- | --- | --- | --- |\n{lines}\n"
        f"```{{toctree}}\n:hidden:\n\n{tree}\n```\n"
    )


def _index() -> str:
    return (
        "# Policies\n\n"
        "A policy is a rule for deciding. Which one to take: `dpbandits recommend`, or `dpb.recommend`, "
        "names one with reasons. Each page says what the policy does, what it promises and why, what it "
        "cost when it was measured, and its options.\n\n"
        + "".join(f"- [{title}]({family}.md)\n" for family, title in FAMILIES.items())
        + "\n```{toctree}\n:hidden:\n\n"
        + "\n".join(FAMILIES)
        + "\n```\n"
    )
