"""The pure parts of live agreement: judging one answer, the report, the plan, the shapes."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from bayplan.conformance.agreement.__main__ import main, plan
from bayplan.conformance.agreement.judging import Answer, Verdict, explain, judge
from bayplan.conformance.agreement.real import answer_of
from bayplan.conformance.agreement.report import Report, Tally
from bayplan.conformance.agreement.shapes import SHAPES, Shape
from bayplan.model.objects import decode
from bayplan.model.pods import Pod
from bayplan.scheduling.decision import Decision, Outcome, Preemption, TieRule, Victims
from bayplan.scheduling.framework import Refusal

POD = ("default", "p")
VICTIM = ("default", "v")
PLACED = Decision(
    POD,
    Outcome.SCHEDULED,
    "a",
    TieRule.HEAP,
    feasible=("a", "b", "c"),
    scores={"a": {"Fit": 80, "Taints": 300}, "b": {"Fit": 80, "Taints": 300}, "c": {"Fit": 79, "Taints": 300}},
    best=("a", "b"),
    refusals={"d": Refusal("NodePorts", ("node(s) didn't have free ports for the requested pod ports",))},
)
DRAWN = msgspec.structs.replace(PLACED, any_of=("a", "b"))
REFUSED = Decision(POD, Outcome.UNSCHEDULABLE, message="0/2 nodes are available.")
EVICTING = msgspec.structs.replace(
    REFUSED, preemption=Preemption("a", candidates={"a": Victims((VICTIM,)), "b": Victims(())})
)
EITHER = msgspec.structs.replace(
    REFUSED, preemption=Preemption("a", any_of=("a", "b"), candidates={"a": Victims((VICTIM,)), "b": Victims((POD,))})
)
SAID = "0/2 nodes are available."


@pytest.mark.parametrize(
    ("decision", "answer", "verdict"),
    [
        pytest.param(PLACED, Answer("a"), Verdict.SAME, id="the same node"),
        pytest.param(PLACED, Answer("b"), Verdict.BEST, id="another with the best total"),
        pytest.param(PLACED, Answer("c"), Verdict.DIFFERENT, id="a node with a lower total"),
        pytest.param(PLACED, Answer(message=SAID), Verdict.DIFFERENT, id="refused where we find a place"),
        pytest.param(DRAWN, Answer("b"), Verdict.OPEN, id="one of those among which upstream draws"),
        pytest.param(DRAWN, Answer("c"), Verdict.DIFFERENT, id="none of those among which upstream draws"),
        pytest.param(REFUSED, Answer("a"), Verdict.DIFFERENT, id="placed where we find none"),
        pytest.param(REFUSED, Answer(message=SAID), Verdict.SAME, id="refused in the same words"),
        pytest.param(REFUSED, Answer(message="no"), Verdict.WORDS, id="refused in other words"),
        pytest.param(EVICTING, Answer("", SAID, "a", frozenset({VICTIM})), Verdict.SAME, id="the same victim"),
        pytest.param(EVICTING, Answer("", SAID, "a"), Verdict.DIFFERENT, id="nobody had to go"),
        pytest.param(EVICTING, Answer("", SAID, "b"), Verdict.DIFFERENT, id="another node is nominated"),
        pytest.param(EVICTING, Answer("", SAID), Verdict.DIFFERENT, id="no node is nominated"),
        pytest.param(EITHER, Answer("", SAID, "b", frozenset({POD})), Verdict.OPEN, id="one of the tied nominations"),
        pytest.param(EITHER, Answer("", SAID), Verdict.DIFFERENT, id="none of the tied nominations"),
    ],
)
def test_a_real_answer_is_judged(decision: Decision, answer: Answer, verdict: Verdict) -> None:
    assert judge(decision, answer) is verdict


@pytest.mark.parametrize(
    ("document", "answer"),
    [
        pytest.param({}, None, id="nothing has been said"),
        pytest.param({"spec": {"nodeName": "a"}}, Answer("a"), id="bound"),
        pytest.param(
            {"status": {"conditions": [{"type": "PodScheduled", "status": "False", "message": "no"}]}},
            Answer(message="no"),
            id="refused",
        ),
        pytest.param(
            {
                "status": {
                    "nominatedNodeName": "a",
                    "conditions": [{"type": "PodScheduled", "status": "False", "message": "no"}],
                }
            },
            Answer(message="no", nominated="a"),
            id="nominated",
        ),
        pytest.param(
            {"status": {"conditions": [{"type": "Ready", "status": "False", "message": "no"}]}},
            None,
            id="a condition of another kind",
        ),
    ],
)
def test_a_pod_tells_the_schedulers_word(document: dict[str, object], answer: Answer | None) -> None:
    assert answer_of(decode(msgspec.json.encode(document), Pod)) == answer


def _report() -> Report:
    single = Tally(shape="zones", seed=7, refused=1, seconds=2.0)
    for step, answer in enumerate((Answer("a"), Answer("b"), Answer("d"), Answer(message="no nodes"))):
        single.add(judge(PLACED, answer), step, "p", explain(PLACED, answer))
    evicted = Answer("", SAID, "a", frozenset({VICTIM}))
    single.add(judge(REFUSED, evicted), 4, "q", explain(REFUSED, evicted))
    several = Tally(shape="zones-parallel", seed=7, parallelism=16, seconds=0.5)
    several.add(Verdict.BEST, 0, "p", "not told")
    return Report([single, several])


def test_the_report_as_people_read_it(snapshot: SnapshotAssertion) -> None:
    assert "\n".join(_report().lines()) == snapshot


def test_at_most_so_many_disagreements_are_shown() -> None:
    assert "(+3 more)" in [*_report().lines(most=1)]


def test_the_report_as_json_has_all_of_it() -> None:
    document = msgspec.json.decode(msgspec.json.encode(_report().document()))

    assert document["agreement"] == 0.2
    assert document["agreementParallel"] == 1.0
    assert document["reached"] is False
    assert [each["decisions"] for each in document["shapes"]] == [5, 1]
    assert document["shapes"][0]["verdicts"] == {"same": 1, "best": 1, "different": 3}
    assert [each["step"] for each in document["shapes"][0]["disagreements"]] == [1, 2, 3, 4]


@pytest.mark.parametrize(
    ("verdict", "parallelism", "reached"),
    [
        pytest.param(Verdict.SAME, 1, True, id="the same"),
        pytest.param(Verdict.WORDS, 1, True, id="refused by both in other words, which is told but no other place"),
        pytest.param(Verdict.BEST, 1, False, id="another of the best with one thread"),
        pytest.param(Verdict.BEST, 16, True, id="another of the best with several"),
        pytest.param(Verdict.DIFFERENT, 16, False, id="none of the best with several"),
    ],
)
def test_what_counts_as_agreement(verdict: Verdict, parallelism: int, reached: bool) -> None:
    tally = Tally(shape="plain", seed=1, parallelism=parallelism)
    tally.add(verdict, 0, "p", "")
    assert Report([tally]).reached is reached


def test_no_decision_is_no_agreement() -> None:
    assert not Report([Tally(shape="plain", seed=1)]).reached


def test_silence_ends_a_shape_and_counts_against_it() -> None:
    tally = Tally(shape="plain", seed=1)
    tally.fall_silent(3, "p", "no word")
    assert tally.silent
    assert not Report([tally]).reached


@given(decisions=st.integers(1, 20_000), names=st.sets(st.sampled_from([*SHAPES]), min_size=1))
def test_shapes_with_one_thread_share_all_decisions(decisions: int, names: set[str]) -> None:
    given_to = plan(decisions, [*names])

    single = sum(count for name, count in given_to.items() if SHAPES[name].parallelism == 1)
    assert given_to.keys() == names
    assert min(given_to.values()) > 0
    assert single == 0 or decisions <= single < decisions + len(names)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=lambda shape: shape.name)
def test_a_seed_gives_the_same_arrivals_again(shape: Shape) -> None:
    def draw() -> list[object]:
        random = Random("seed")
        nodes: list[object] = [shape.node(number, random) for number in range(5)]
        return nodes + [shape.pod(random) for _ in range(50)]

    assert draw() == draw()


def test_an_unknown_shape_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--shape", "nowhere"])
    assert "'priorities'" in capsys.readouterr().err
