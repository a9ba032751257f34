"""How many "25%" are: the int-or-percentage of rolling updates and budgets, resolved against a total."""

from __future__ import annotations


def resolved(value: int | str | None, total: int, *, up: bool) -> int:
    """The number that a count or percentage stands for; a percentage is rounded up or down. None stands for none."""
    if value is None or isinstance(value, int):
        return value or 0
    share = int(value.removesuffix("%")) * total  # admission lets nothing through but digits and a percent sign
    return -(-share // 100) if up else share // 100
