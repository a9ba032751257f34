"""What one command line says besides its verb: where settings come from, and how errors are shown.

A verb gets it with `@click.pass_obj` and asks `invocation.settings()` for the settings when it needs them.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bayplan.service.settings import Settings
    from bayplan.service.sources import Resolved


class Invocation:
    """The global flags of one command line."""

    def __init__(self) -> None:
        self.config: str | None = None
        self.debug = any(level in os.environ.get("BAYPLAN_LOG", "") for level in ("debug", "trace"))
        self._given: list[tuple[str, str, str]] = []

    def give(self, key: str, text: str, flag: str) -> None:
        """A flag sets a setting; a verb's own flags may do so too."""
        self._given.append((key, text, flag))

    def settings(self) -> Resolved:
        """Resolve the settings. Raises SettingsError."""
        from bayplan.service.sources import Given, load

        return load(flags=[Given(*given) for given in self._given], file=self.config)

    def quiet_settings(self) -> Settings:
        """For verbs that talk to a person: starting and stopping is no news; whoever asks for levels gets them."""
        import msgspec

        from bayplan.service.levels import WARNING, Levels

        resolved = self.settings()
        settings = resolved.settings
        if resolved.origins["log.levels"] == "default":
            log = msgspec.structs.replace(settings.log, levels=Levels(WARNING))
            settings = msgspec.structs.replace(settings, log=log)
        return settings


def _remember_config(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.obj.config = value


def _remember_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.obj.debug |= value


def _remember_format(ctx: click.Context, _: click.Parameter, value: str | None) -> None:
    if value is not None:
        ctx.obj.give("log.format", value, "--log-format")


def _remember_set(ctx: click.Context, _: click.Parameter, values: Iterable[str]) -> None:
    for value in values:
        key, equals, text = value.partition("=")
        if not equals:
            raise click.BadParameter(f'expected section.key=value; got "{value}"')
        ctx.obj.give(key, text, "--set")


# Kept as arguments of click.Option, since every verb gets copies of them.
GLOBAL_FLAGS: list[tuple[list[str], dict[str, Any]]] = [
    (
        ["--config"],
        {"metavar": "FILE", "callback": _remember_config, "help": "Settings file, instead of the default one."},
    ),
    (
        ["--set"],
        {"metavar": "KEY=VALUE", "multiple": True, "callback": _remember_set, "help": "Set a setting; repeatable."},
    ),
    (
        ["--log-format"],
        {"type": click.Choice(["auto", "text", "json"]), "callback": _remember_format, "help": "Short for log.format."},
    ),
    (["--debug"], {"is_flag": True, "callback": _remember_debug, "help": "Show where an unexpected error arose."}),
]
for _names, _how in GLOBAL_FLAGS:
    _how["expose_value"] = False


def output_option(*formats: str) -> Callable[[Any], Any]:
    """The flag `-o`, as kubectl has it."""
    return click.option("-o", "--output", type=click.Choice(formats), help="Output format.")
