"""Which pods get which CPUs of a machine and why, and what would let refused ones in.

Run it: python examples/08_cpu_plan.py

The same drawn: bayplan cpu plan -f examples/08_cpu_plan.yaml --machine dgx-a100 --topology-manager-policy=restricted
"""

from __future__ import annotations

from pathlib import Path

from bayplan.cli.cpu.pod_files import read_pods
from bayplan.node.configuration import read_configuration
from bayplan.node.machines import named
from bayplan.node.plan import blockage, candidate, make_plan, shares
from bayplan.node.sets import format_list
from bayplan.node.whatif import situation, suggestions

PODS = Path(__file__).with_suffix(".yaml")
KUBELET = read_configuration(
    arguments=["--cpu-manager-policy=static", "--reserved-cpus=0,128", "--topology-manager-policy=restricted"]
)


def main() -> None:
    pods = read_pods([str(PODS)]).pods
    plan = make_plan(named("dgx-a100"), KUBELET, map(candidate, pods))
    for outcome in plan.outcomes:
        if outcome.admitted:
            for share in shares(plan, outcome):
                cpus = format_list(share.held.cpus) or "shared CPUs"
                print(f"{outcome.candidate.name} {share.container}: {cpus}, {share.why}")

    for first, *others in plan.alike:
        print(f"\n{first.candidate.name} and {len(others)} more are refused:")
        for sentence in blockage(first).because:
            print(f"  {sentence}")
        print("let in if")
        for change in suggestions(situation(plan, first)):
            print(f"  {change}")


main()
