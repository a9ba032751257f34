"""What the trees of this package have beyond the port: the files they stand on, and shares in version 1's unit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from bayplan.node.cgroup.files import Files
from bayplan.node.cgroup.port import Group


class FileGroup(Group, Protocol):
    """A group that is files."""

    def set_shares(self, shares: int) -> None:
        """Set the soft share in version 1's unit: exactly there, as runtimes convert it in version 2."""
        ...

    def frozen(self) -> bool:
        """Whether every process has stopped."""
        ...


class FileTree(Protocol):
    """A tree that is files: the same tree can be had over other files."""

    @property
    def version(self) -> int: ...
    @property
    def files(self) -> Files: ...
    def over(self, files: Files) -> FileTree:
        """The same tree over other files."""
        ...

    def group(self, path: str) -> FileGroup: ...
    def create(self, path: str) -> FileGroup: ...
    def remove(self, path: str) -> None: ...
    def walk(self, path: str = "/") -> Iterator[FileGroup]: ...
