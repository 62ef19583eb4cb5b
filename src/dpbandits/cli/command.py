"""What all commands share: no option is given twice, and Ctrl-C ends in one sentence."""

import difflib
from collections import Counter
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from dpbandits.cli.output import stoppable
from dpbandits.errors import InvalidInput

_EPSILON = {"--privacy": "--privacy eps=1"}
_ROUNDS = {"--rounds": "--rounds"}
# What people type for options of ours, and what to type instead.
_MEANT = {
    "--eps": _EPSILON,
    "--epsilon": _EPSILON,
    "--delta": {"--privacy": "--privacy eps=1,delta=1e-6"},
    "--mu": {"--privacy": "--privacy mu=1"},
    "--rho": {"--privacy": "--privacy rho=0.5"},
    "--budget": _EPSILON,
    "--people": _ROUNDS,
    "--horizon": _ROUNDS,
}


class Group(TyperGroup):
    """All commands; Ctrl-C ends any of them with a sentence, while it reads its options too."""

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """As usual."""
        with stoppable():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """As usual."""
        with stoppable():
            return super().invoke(ctx)


class Command(TyperCommand):
    """A command that refuses an option given twice, where the parser would take the last."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """As usual, if nothing is given twice."""
        try:
            *_, order = self.make_parser(ctx).parse_args(args=list(args))
        except Exception as error:  # wherever the parser's version defines it
            unknown = getattr(error, "option_name", None)
            if unknown is None or not hasattr(error, "possibilities"):
                raise
            raise InvalidInput(self._no_such(unknown)) from None
        for option, times in Counter(order).items():
            if times > 1 and not getattr(option, "multiple", False):
                raise InvalidInput(f"{option.opts[0]} was given {times} times; give it once")
        return super().parse_args(ctx, args)

    def _no_such(self, typed: str) -> str:
        """What may have been meant by an option that there is not."""
        known = [name for one in self.params for name in (*one.opts, *one.secondary_opts)]
        known = [name for name in known if name.startswith("--")]
        for option, meant in _MEANT.get(typed, {}).items():
            if option in known:
                return f"no option is called {typed}; write {meant}"
        near = difflib.get_close_matches(typed, known, n=1, cutoff=0.75)
        hint = f"did you mean {near[0]}?" if near else f"see `dpbandits {self.name} --help`"
        return f"no option is called {typed}; {hint}"


def given(ctx: typer.Context, *names: str) -> list[str]:
    """Those of the options that were typed, as they are typed."""
    sources = {name: ctx.get_parameter_source(name) for name in names}
    typed = (name for name, source in sources.items() if source and source.name == "COMMANDLINE")
    return [f"--{name.replace('_', '-')}" for name in typed]
