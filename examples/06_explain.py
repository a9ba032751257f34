"""Why a pod goes where it goes, why another is pending, and what would place it. Run it: python examples/06_explain.py

Nothing runs here: the scheduler's decisions are pure functions of a cluster's state.
"""

from __future__ import annotations

from bayplan.scheduling.explanation import explain
from bayplan.scheduling.profiles import default_profile
from bayplan.scheduling.state import ClusterState
from bayplan.testing import node, pod

STATE = ClusterState(
    each.view()
    for each in (
        node("cpu-1").offers(cpu=16, memory="64Gi"),
        node("cpu-2").offers(cpu=16, memory="64Gi"),
        node("gpu-1").offers(cpu=32, memory="128Gi", gpu=8).tainted("gpu", "yes"),
        pod("web").requests(cpu=4, memory="8Gi").on("cpu-1"),
        pod("train").requests(cpu=8, gpu=2).on("gpu-1"),
    )
)
PROFILE = default_profile()


def main() -> None:
    found = explain(STATE, PROFILE, pod("api").requests(cpu=2, memory="4Gi").view())
    decision = found.decision
    print(f"api goes to {decision.node}: {decision.rule}")
    for name in found.ranked:
        scores = ", ".join(f"{plugin} {points}" for plugin, points in decision.scores[name].items() if points)
        print(f"  {name}  {decision.total(name)} = {scores}")
    for name, refusals in found.refusals.items():
        print(f"  {name}  {refusals[0].plugin}: {', '.join(refusals[0].reasons)}")

    for wanted in (
        pod("wide").requests(cpu=20),
        pod("trainer").requests(cpu=4, gpu=8).tolerates("gpu"),
        pod("tuner").requests(cpu=4, gpu=7),
    ):
        found = explain(STATE, PROFILE, wanted.view())
        print(f"\n{wanted.name}: {found.decision.fit_error}")
        for proposal in found.answer.proposals:
            print(f"  would fit if {', and '.join(map(str, proposal.changes))}")


main()
