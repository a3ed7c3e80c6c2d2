"""Command with actions: `dlq list`. Tested in tests/acceptance/test_actions.py."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup, TyperOption


class CommandGroup(TyperGroup):
    """Group that also accepts options before the action: `noetl dlq --json list`."""

    default: str | None = None  # action that runs if the line names none

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args or not ctx.resilient_parsing:  # while a shell completes an empty line, every action is possible
            args = self._action_first(args)
        return super().parse_args(ctx, args)

    def _action_first(self, args: list[str]) -> list[str]:
        options = [param for command in self.commands.values() for param in command.params]
        with_value = {name for one in options if isinstance(one, TyperOption) and not one.is_flag for name in one.opts}
        is_value = False
        for index, word in enumerate(args):
            if is_value:
                is_value = False
            elif word in self.commands:
                return [word, *args[:index], *args[index + 1 :]]
            elif not word.startswith("-") or word in ("-h", "--help"):  # not an action: leave the error to the parser
                return args[index:]
            else:
                is_value = word in with_value
        return args if self.default is None else [self.default, *args]


def command_group(help: str, cls: type[CommandGroup] = CommandGroup) -> typer.Typer:
    """Return an application whose commands are the actions of one command."""
    return typer.Typer(
        cls=cls,
        help=help,
        no_args_is_help=cls.default is None,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
