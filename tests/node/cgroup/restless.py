"""A process that changes groups through a journal until it is killed: `restless.py BASE JOURNAL SEED`."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path

from bayplan.node.cgroup.journalled import JournalledTree
from bayplan.node.cgroup.port import Bandwidth, GroupGoneError, WriteRefusedError
from bayplan.node.cgroup.trees import FileGroup, FileTree
from bayplan.node.sets import ids_of


def change_for_ever(tree: JournalledTree, base: str, dice: random.Random) -> None:
    """Until the end of the process."""
    while True:
        change_something(tree, base, dice)


def change_something(tree: JournalledTree, base: str, dice: random.Random) -> None:
    """One random change; what the kernel refuses is refused."""
    try:
        if dice.random() < 0.1:
            tree.create(f"{base}/new{dice.randrange(3)}/deep")
        elif dice.random() < 0.05:
            tree.remove(f"{base}/new{dice.randrange(3)}/deep")
        else:
            _set_something(dice.choice(list(tree.walk(base))[1:]), dice)
    except (WriteRefusedError, GroupGoneError):
        return


def _set_something(group: FileGroup, dice: random.Random) -> None:
    quota = dice.choice([None, 20_000, 50_000, 100_000])
    burst = dice.choice([0, 5_000, 20_000])
    cpus = list(ids_of(group.cpuset().effective_cpus))
    some = sum(1 << each for each in dice.sample(cpus, dice.randint(1, len(cpus))))
    changes: list[Callable[[], None]] = [
        lambda: group.set_bandwidth(Bandwidth(quota, dice.choice([50_000, 100_000, 200_000]), burst)),
        lambda: group.set_shares(dice.randrange(2, 5000)),
        lambda: group.set_cpuset(some, 1),
        lambda: group.set_memory_limit(dice.choice([None, dice.randrange(64 << 20, 128 << 20)])),
        lambda: group.freeze(dice.random() < 0.5),
    ]
    dice.choice(changes)()


def furnish(tree: FileTree, base: str) -> None:
    """Groups that belong to someone else, with values that no conversion would hit by chance."""
    for name, shares in (("a", 777), ("a/b", 3), ("c", 261)):
        group = tree.create(f"{base}/{name}")
        group.set_shares(shares)
        group.set_memory_limit(200 << 20)
    tree.group(f"{base}/a").set_bandwidth(Bandwidth(80_000, 100_000, 10_000))
    tree.group(f"{base}/a/b").set_bandwidth(Bandwidth(40_000, 50_000, 0))


def main() -> None:
    from bayplan.node.cgroup.detect import find_tree

    base, journal, seed = sys.argv[1:]
    tree = JournalledTree.open(find_tree(), Path(journal))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    change_for_ever(tree, base, random.Random(int(seed)))


if __name__ == "__main__":
    main()
