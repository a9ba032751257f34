"""The kernel's small files: read under a root, and refused with their path and content where they make no sense."""

from __future__ import annotations

import re
from pathlib import Path

from bayplan.model.errors import PermanentError
from bayplan.node.sets import BadListError, parse_list

CPUS = "sys/devices/system/cpu"
NODES = "sys/devices/system/node"
PCI = "sys/bus/pci/devices"


class DiscoveryError(PermanentError):
    """A file of the kernel is missing, cannot be read, or contradicts another."""

    code = "BP-N040"

    def __init__(self, message: str, *, hint: str = "describe the machine in a file instead: docs/machines.md") -> None:
        super().__init__(message, hint=hint)


class NoNumaError(DiscoveryError):
    """The kernel says nothing of NUMA nodes, and there are several sockets whose memory it would have to tell apart."""

    code = "BP-N041"


class Files:
    """Files under a root; paths are written without the leading slash. Every method raises DiscoveryError."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def place(self, path: str) -> str:
        """A path as errors show it."""
        return str(self._root / path)

    def text(self, path: str) -> str:
        """A file's text without the newline at its end."""
        try:
            return (self._root / path).read_text(errors="replace").strip()
        except OSError as error:
            raise DiscoveryError(f"{self.place(path)}: {error.strerror}") from error

    def text_if_there(self, path: str) -> str | None:
        """A file's text, None where there is no such file."""
        return self.text(path) if (self._root / path).exists() else None

    def number(self, path: str) -> int:
        """A file that holds one whole number."""
        return self.as_number(self.text(path), path)

    def as_number(self, text: str, path: str) -> int:
        """A whole number, decimal or hexadecimal, that stood in a file."""
        try:
            return int(text, 0)
        except ValueError as error:
            raise self.wrong(path, text, "a whole number") from error

    def ids(self, path: str) -> int:
        """A file that holds a list such as `0-3,8`, as a set."""
        text = self.text(path)
        try:
            return parse_list(text)
        except BadListError as error:
            raise self.wrong(path, text, "a list such as 0-3,8") from error

    def numbered(self, folder: str, prefix: str) -> list[int]:
        """The numbers of the entries `prefix<number>` of a folder, ascending; none where there is no such folder."""
        pattern = re.compile(re.escape(prefix) + r"([0-9]+)")
        matches = (pattern.fullmatch(name) for name in self.names(folder))
        return sorted(int(match[1]) for match in matches if match)

    def names(self, folder: str) -> list[str]:
        """The names in a folder, in order; none where there is no such folder."""
        try:
            return sorted(each.name for each in (self._root / folder).iterdir())
        except FileNotFoundError:
            return []
        except OSError as error:
            raise DiscoveryError(f"{self.place(folder)}: {error.strerror}") from error

    def wrong(self, path: str, value: object, expected: str) -> DiscoveryError:
        """The error for a value that makes no sense."""
        return DiscoveryError(f'{self.place(path)}: expected {expected}, not "{value}"')
