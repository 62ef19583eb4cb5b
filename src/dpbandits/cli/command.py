"""What all commands share: no option is given twice, and Ctrl-C ends in one sentence."""

from collections import Counter
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from dpbandits.cli.output import stoppable
from dpbandits.errors import InvalidInput


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
        *_, order = self.make_parser(ctx).parse_args(args=list(args))
        for option, times in Counter(order).items():
            if times > 1:
                raise InvalidInput(f"{option.opts[0]} was given {times} times; give it once")
        return super().parse_args(ctx, args)


def given(ctx: typer.Context, *names: str) -> list[str]:
    """Those of the options that were typed, as they are typed."""
    sources = {name: ctx.get_parameter_source(name) for name in names}
    typed = (name for name, source in sources.items() if source and source.name == "COMMANDLINE")
    return [f"--{name.replace('_', '-')}" for name in typed]
