"""The error that tells every fault of a configuration."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.model.errors import PermanentError
from bayplan.model.faults import Fault


class ConfigurationError(PermanentError):
    """A scheduler configuration cannot be used; a line for each fault."""

    code = "BP-P001"

    def __init__(self, faults: Iterable[Fault], source: str = "") -> None:
        self.faults = tuple(faults)
        super().__init__(
            "\n".join(fault.text(source) for fault in self.faults),
            hint="docs/scheduler-configuration.md has an example",
        )
