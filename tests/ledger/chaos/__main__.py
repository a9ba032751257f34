"""The command: `python -m tests.ledger.chaos [--kills 50] [--faults 3] [--database sqlite] [--seed 1]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.ledger.chaos.campaign import SERVERS, Plan, run, say
from tests.ledger.chaos.faults import FAULTS, KILLED
from tests.ledger.chaos.tables import table


def main() -> int:
    """Make one campaign and print its table; 1 when the database differs from etcd."""
    parser = argparse.ArgumentParser(prog="python -m tests.ledger.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="how often the ledger is killed (default 50)")
    parser.add_argument("--faults", type=int, default=3, help="how often each other fault is made (default 3)")
    parser.add_argument("--database", choices=["sqlite", *SERVERS], default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--outage", type=float, default=5.0, help="seconds that things are away (default 5)")
    parser.add_argument("--closing", type=float, default=120.0, help="seconds through which watches are closed (120)")
    parser.add_argument("--pace", type=float, default=0.0, help="seconds that each writer of the load rests (0)")
    parser.add_argument("--cold", type=int, default=0, help="pods that are there before the ledger (0)")
    parser.add_argument("--replicas", type=int, default=1, help="of the ledger; the leader is killed (1)")
    parser.add_argument("--finalizers", action="store_true", help="with the ledger's finalizers")
    parser.add_argument("--only", choices=[*FAULTS], action="append", help="only this fault; may be repeated")
    parser.add_argument("--log", type=Path, help="keep the ledger's log in this file")
    given = parser.parse_args()
    plan = Plan(
        times={name: _times(name, given) for name in given.only or FAULTS},
        database=given.database,
        seed=given.seed,
        outage=given.outage,
        closing=given.closing,
        pace=given.pace,
        cold=given.cold,
        replicas=given.replicas,
        finalizers=given.finalizers,
    )
    result = run(plan)
    if given.log:
        given.log.write_text(result.log)
    say("\n".join(["", table(result), *result.verdict.findings]))
    return 0 if result.sound else 1


def _times(name: str, given: argparse.Namespace) -> int:
    """How often a fault is made."""
    if name == KILLED:
        return int(given.kills)
    return min(1, given.faults) if FAULTS[name].once else int(given.faults)


if __name__ == "__main__":
    sys.exit(main())
