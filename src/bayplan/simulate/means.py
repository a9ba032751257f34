"""The mean of several runs, and how far it may be from the truth."""

from __future__ import annotations

import math
from collections.abc import Sequence


def mean_and_error(values: Sequence[float]) -> tuple[float, float | None]:
    """The mean and its standard error; None for a single run, of which nobody knows."""
    mean = math.fsum(values) / len(values)
    if len(values) == 1:
        return mean, None
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    return mean, math.sqrt(variance / len(values))
