"""The static policy: reservation, what a restart checks, whole cores, selection inside an affinity."""

from __future__ import annotations

import pytest

from bayplan.node.cpu.policy import StaticPolicy
from bayplan.node.cpu.state import CpuState
from bayplan.node.errors import AllocationError, PolicyError, SMTAlignmentError, StateError
from bayplan.node.policies import NodePolicies
from bayplan.node.sets import format_list, parse_list
from tests.node.cpu.machines import machine

MACHINE = machine(sockets=2, nodes=4, cores=8)
"""Socket 0: node 0 (0-1, 8-9), node 1 (2-3, 10-11); socket 1: node 2 (4-5, 12-13), node 3 (6-7, 14-15)."""
FULL, STRICT, SOCKET = "full-pcpus-only", "strict-cpu-reservation", "align-by-socket"


def policy(*options: str, reserved: int = 1, cpus: str = "", as_upstream: bool = False) -> StaticPolicy:
    settings = NodePolicies(
        cpu="static",
        cpu_options=dict.fromkeys(options, "true"),
        reserved=reserved,
        reserved_cpus=parse_list(cpus),
        as_upstream=as_upstream,
    )
    return StaticPolicy(MACHINE, settings)


@pytest.mark.parametrize(
    ("reserved", "cpus", "expected", "physical"),
    [
        pytest.param(0, "", "", "", id="nothing"),
        pytest.param(2, "", "0,8", "0,8", id="chosen as any request is"),
        pytest.param(2, "3,15", "3,15", "3,7,11,15", id="named, with their siblings"),
    ],
)
def test_reservation(reserved: int, cpus: str, expected: str, physical: str) -> None:
    found = policy(reserved=reserved, cpus=cpus)
    assert (format_list(found.reserved), format_list(found.reserved_physical)) == (expected, physical)


@pytest.mark.parametrize(
    ("reserved", "cpus", "message"),
    [
        pytest.param(17, "", "required amount of CPUs (size of  did not equal 17)", id="more than there are"),
        pytest.param(3, "0-1", "required amount of CPUs (size of 0-1 did not equal 3)", id="fewer named than reserved"),
        pytest.param(1, "99", "from the reserved set: unknown CPU ID: 99", id="a CPU that is not there"),
    ],
)
def test_refused_reservations(reserved: int, cpus: str, message: str) -> None:
    with pytest.raises(PolicyError) as refused:
        policy(reserved=reserved, cpus=cpus)
    assert refused.value.message.startswith("[cpumanager] unable to ")
    assert refused.value.message.endswith(message)


def state(default: str, held: str = "") -> CpuState:
    return CpuState(parse_list(default), {"uid": {"app": parse_list(held)}} if held else {})


@pytest.mark.parametrize(
    ("options", "remembered", "expected"),
    [
        pytest.param((), state(""), "0-15", id="at first every CPU is shared"),
        pytest.param((STRICT,), state(""), "1-15", id="strict: without the reserved one"),
        pytest.param((), state("0-7", "8-15"), "0-7", id="a state that fits is kept"),
        pytest.param((STRICT,), state("1-7", "8-15"), "1-7", id="strict: a state that fits is kept"),
        pytest.param(
            (STRICT,), state("", "1-15"), "", id="strict: every CPU but the reserved one may be someone's own"
        ),
    ],
)
def test_start(options: tuple[str, ...], remembered: CpuState, expected: str) -> None:
    started = policy(*options).started(remembered)
    assert format_list(started.default) == expected
    assert started.assignments == remembered.assignments


@pytest.mark.parametrize(
    ("options", "remembered", "message"),
    [
        pytest.param((), state("", "0-15"), "default cpuset cannot be empty", id="no shared pool"),
        pytest.param(
            (),
            state("1-15"),
            'not all reserved cpus: "0" are present in defaultCpuSet: "1-15"',
            id="a reserved CPU is not shared",
        ),
        pytest.param(
            (STRICT,),
            state("0-15"),
            'some of strictly reserved cpus: "0" are present in defaultCpuSet: "0-15"',
            id="strict: a reserved CPU is shared",
        ),
        pytest.param(
            (),
            state("0-8", "8-15"),
            'pod: uid, container: app cpuset: "8-15" overlaps with default cpuset "0-8"',
            id="an assigned CPU is shared",
        ),
        pytest.param(
            (),
            state("0-7", "8-11"),
            'current set of available CPUs "0-15" doesn\'t match with CPUs in state "0-11"',
            id="CPUs that the state does not know",
        ),
        pytest.param(
            (STRICT,),
            state("1-16"),
            'current set of available CPUs "1-15" doesn\'t match with CPUs in state "1-16"',
            id="strict: a CPU that is gone",
        ),
    ],
)
def test_states_that_do_not_fit(options: tuple[str, ...], remembered: CpuState, message: str) -> None:
    with pytest.raises(StateError) as refused:
        policy(*options).started(remembered)
    assert refused.value.message == message


@pytest.mark.parametrize(
    ("default", "reusable", "count", "message"),
    [
        pytest.param("0-15", "", 3, "requested 3 cpus not multiple cpus per core = 2", id="half a core"),
        pytest.param(
            "0-3",
            "",
            4,
            "not enough free physical CPUs: available physical CPUs = 3, requested CPUs = 4, CPUs per core = 2",
            id="too few without the siblings of reserved CPUs",
        ),
    ],
)
def test_requests_that_do_not_come_in_whole_cores(default: str, reusable: str, count: int, message: str) -> None:
    with pytest.raises(SMTAlignmentError) as refused:
        policy(FULL).check_cores(state(default), parse_list(reusable), count)
    assert refused.value.message == f"SMT Alignment Error: {message}"
    assert refused.value.admission_message == refused.value.message
    policy().check_cores(state(default), parse_list(reusable), count)


def test_what_can_be_reused_counts_as_whole_cores() -> None:
    policy(FULL).check_cores(state("0,8"), parse_list("1-2,9-10"), 4)
    with pytest.raises(SMTAlignmentError):
        policy(FULL, as_upstream=True).check_cores(state("0,8"), parse_list("1-2,9-10"), 4)


@pytest.mark.parametrize(
    ("options", "pool", "count", "nodes", "expected"),
    [
        pytest.param((), "1-15", 2, None, "1,9", id="anywhere: the fullest node"),
        pytest.param((), "1-15", 2, 0b1000, "6,14", id="inside the affinity"),
        pytest.param((), "2-7,10-15", 6, 0b1000, "2,6-7,10,14-15", id="the rest from outside"),
        pytest.param((), "0-3,8-11", 2, 0b1000, "0,8", id="an affinity with nothing free"),
        pytest.param((SOCKET,), "2-7,10-15", 6, 0b1000, "4-6,12-14", id="by socket: all from the same socket"),
    ],
)
def test_selection(options: tuple[str, ...], pool: str, count: int, nodes: int | None, expected: str) -> None:
    assert format_list(policy(*options).select(parse_list(pool), count, nodes).cpus) == expected


def test_too_little_is_refused() -> None:
    with pytest.raises(AllocationError) as refused:
        policy().select(parse_list("1-3"), 4, 0b1)
    assert refused.value.message == "not enough cpus available to satisfy request: requested=3, available=2"


def test_where_cores_stay_whole_the_siblings_of_reserved_cpus_are_not_offered() -> None:
    fresh = CpuState(MACHINE.all)
    assert format_list(policy(FULL).assignable(fresh)) == "1-7,9-15"
    assert format_list(policy(FULL, as_upstream=True).assignable(fresh)) == "1-15"
    assert format_list(policy().assignable(fresh)) == "1-15"
