"""Machines as files: real shapes by name, and files of one's own, read and written.

A file gives its CPUs either as a `layout` (regular machines) or one by one (`cpus`); both end in the same Machine.
"""

from bayplan.node.machines.reading import Fault, MachineError, read_machine
from bayplan.node.machines.shipped import UnknownMachine, named, names
from bayplan.node.machines.writing import as_document, file_text

__all__ = ["Fault", "MachineError", "UnknownMachine", "as_document", "file_text", "named", "names", "read_machine"]
