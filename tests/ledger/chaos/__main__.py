"""The command: `python -m tests.ledger.chaos [--kills 50] [--faults 3] [--database sqlite] [--seed 1]`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.ledger.chaos.campaign import SERVERS, Plan, run, say, table
from tests.ledger.chaos.faults import FAULTS

KILLED = "ledger killed"


def main() -> int:
    """Make one campaign and print its table; 1 when the database differs from etcd."""
    parser = argparse.ArgumentParser(prog="python -m tests.ledger.chaos", description=__doc__)
    parser.add_argument("--kills", type=int, default=50, help="how often the ledger is killed (default 50)")
    parser.add_argument("--faults", type=int, default=3, help="how often each other fault is made (default 3)")
    parser.add_argument("--database", choices=["sqlite", *SERVERS], default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--outage", type=float, default=5.0, help="seconds that things are away (default 5)")
    parser.add_argument("--only", choices=[*FAULTS], action="append", help="only this fault; may be repeated")
    parser.add_argument("--log", type=Path, help="keep the ledger's log in this file")
    given = parser.parse_args()
    times = {name: given.kills if name == KILLED else given.faults for name in given.only or FAULTS}
    result = run(Plan(times=times, database=given.database, seed=given.seed, outage=given.outage))
    if given.log:
        given.log.write_text(result.log)
    say("\n".join(["", table(result), *result.verdict.findings]))
    return 0 if result.verdict.sound and result.caught_up is not None else 1


if __name__ == "__main__":
    sys.exit(main())
