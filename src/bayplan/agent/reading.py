"""Reading groups that others make: whatever one of them is called or holds, the agent goes on with the rest."""

from __future__ import annotations

from bayplan.node.cgroup.port import Group, GroupGoneError, Tree, UnsupportedError, WriteRefusedError
from bayplan.node.cgroup.v1 import V1Tree
from bayplan.node.cgroup.v2 import V2Tree

UNREADABLE = (GroupGoneError, UnsupportedError, WriteRefusedError, ValueError, LookupError)
"""Gone meanwhile, in other hierarchies only, closed to us, or with a file that says what no kernel says."""


def is_text(path: str) -> bool:
    """Whether a group's name is UTF-8: whoever may make groups may name them with any bytes, and a label cannot."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def printable(path: str) -> str:
    """A group's name for a terminal: what would move the cursor or colour the rest is written out."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in path)


def group_named(tree: Tree, text: str) -> Group:
    """The group that a person means: its path, or its directory with the mount point. Raises GroupGoneError."""
    mounts = [*tree.mounts.values()] if isinstance(tree, V1Tree) else [tree.root] if isinstance(tree, V2Tree) else []
    inside = next((each for each in mounts if f"{text}/".startswith(f"{each.rstrip('/')}/")), "")
    return tree.group(text.removeprefix(inside) or "/")


def cpu_part(tree: Tree) -> Tree:
    """The same tree; of version 1 only the hierarchies that the CPU's files are in: the others cost the same again."""
    if isinstance(tree, V1Tree):
        return V1Tree(tree.files, {each: tree.mounts[each] for each in ("cpu", "cpuacct") if each in tree.mounts})
    return tree
