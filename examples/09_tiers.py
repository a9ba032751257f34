"""Tiers: how far a node interferes with a task, softly first. Run it: python examples/09_tiers.py

The control groups are in memory and the time is virtual, so it runs anywhere. On a node the tree is `find_tree()`
within a `JournalledTree`, which undoes everything should the process die, and the clock a `SystemClock`: docs/tiers.md.
"""

from __future__ import annotations

from bayplan.model.clock import MILLISECOND, Instant, VirtualClock
from bayplan.node.burst.holds import Holds
from bayplan.node.cgroup.fake import FakeTree
from bayplan.node.cgroup.port import Bandwidth, Counters
from bayplan.node.tiers.manager import TIERS, TierError, TierManager
from bayplan.node.tiers.task import Task

WEB, BATCH = "/web", "/batch"


def show(tree: FakeTree, path: str) -> str:
    group = tree.group(path)
    cpus = group.bandwidth().cpus
    return f"weight {group.weight():3}, limit {'none' if cpus is None else f'{cpus:.2f} CPUs'}"


def main() -> None:
    tree, clock = FakeTree(), VirtualClock()
    tree.create(WEB).set_bandwidth(Bandwidth(50_000))  # a container limited to half a CPU
    batch = tree.spawn()  # a process that has no group of its own yet

    manager = TierManager(tree, clock, Holds(tree))
    manager.add(Task.container("web", WEB))
    manager.add(Task.process_group("batch", BATCH, (batch,)))

    print("the batch job disturbs others, and is moved from tier to tier")
    for tier in TIERS:
        manager.set_tier("batch", tier.number)
        print(f"  tier {tier.number}  {show(tree, BATCH)}  {tier.meaning}")

    print("\nweb is throttled by its own limit, and bursts for a moment")
    tree.set_counters(WEB, Counters(periods=10, throttled_periods=6, throttled_ns=300_000_000))
    clock.advance_to(Instant(clock.now() + 500 * MILLISECOND))
    print(f"  throttled in {manager.get_throttle_rate('web'):.0%} of its periods")
    ends = manager.handle_burst("web")
    print(f"  burst       {show(tree, WEB)}")
    assert ends is not None
    clock.advance_to(ends)  # whoever drives the manager sleeps until `next_reset`
    reset = ", ".join(manager.reset_due())
    print(f"  over        {show(tree, WEB)}, reset {reset}")
    seen = manager.metrics("web")
    print(f"  so far      {seen.burst_activations} burst, {seen.throttled_periods} of {seen.periods_total} periods")

    try:
        manager.apply_burst_budget("batch")
    except TierError as refused:
        print(f"\nrefused: {refused.message}")
    manager.close()
    print(f"closed: batch is back in {next(group.path for group in tree.walk() if batch in group.processes())}")


main()
