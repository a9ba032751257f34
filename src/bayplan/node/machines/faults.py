"""The error that tells every fault of a machine file, and the readers of lists and amounts."""

from __future__ import annotations

from collections.abc import Iterable

from bayplan.model.errors import PermanentError
from bayplan.model.faults import Fault, Faults
from bayplan.model.quantity import NANOS, QuantityError, parse
from bayplan.node.machines.document import Amount, IdList
from bayplan.node.sets import BadListError, parse_list


class MachineError(PermanentError):
    """A machine file cannot be used; a line for each fault."""

    code = "BP-N042"

    def __init__(self, faults: Iterable[Fault], source: str) -> None:
        self.faults = tuple(faults)
        super().__init__("\n".join(fault.text(source) for fault in self.faults), hint="docs/machines.md has the format")


def id_set(value: IdList, path: str, faults: Faults) -> int:
    """A list as a set; the empty set where it cannot be read."""
    try:
        return parse_list(str(value))
    except BadListError as error:
        faults.add(path, error.message)
        return 0


def whole(value: Amount, path: str, faults: Faults) -> int:
    """A quantity in whole bytes; 0 where it cannot be read."""
    try:
        nanos = parse(str(value)).nanos
    except QuantityError as error:
        faults.add(path, f'"{value}": {error.message}')
        return 0
    if nanos < 0 or nanos % NANOS:
        faults.add(path, f'expected bytes, not "{value}"')
    return max(0, nanos) // NANOS
