"""The flag `--dry-run`, as kubectl has it: alone it means the client's own guess, with `=server` the server's word."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

TOLD = {"none": "", "client": " (dry run)", "server": " (server dry run)"}
"""What a message ends with."""


def dry_run_option(text: str) -> Callable[[Any], Any]:
    """The flag, with its help."""
    return click.option(
        "--dry-run", type=click.Choice([*TOLD]), is_flag=False, flag_value="client", default="none", help=text
    )
