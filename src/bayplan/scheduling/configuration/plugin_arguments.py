"""The arguments of plugins: read, filled in, and held against upstream's limits.

Source of truth: kube-scheduler 1.36 apis/config/v1/defaults.go and apis/config/validation/validation_pluginargs.go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from bayplan.model.affinity import NodeAffinity, TopologySpreadConstraint
from bayplan.model.durations import DurationError, parse_duration
from bayplan.model.faults import Faults, below, invalid, shown
from bayplan.model.fitting import fit
from bayplan.model.label_rules import label_key_problems
from bayplan.model.meta import Wire
from bayplan.model.node_selectors import node_terms, preferred_terms
from bayplan.model.selectors import SelectorError
from bayplan.scheduling.arguments import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    ShapePoint,
    VolumeBindingArgs,
)
from bayplan.scheduling.configuration.document import API_VERSION
from bayplan.scheduling.gpus.asking import WHOLE
from bayplan.scheduling.plugins.gpu_policies.chance import RandomArgs
from bayplan.scheduling.plugins.gpu_policies.fragmentation import FgdArgs
from bayplan.scheduling.profiles import PLUGINS

Problem = tuple[str, str]
"""A path below the arguments, and what is wrong there."""
_WITHOUT_EFFECT: dict[str, type[Wire]] = {"DynamicResources": DynamicResourcesArgs, "VolumeBinding": VolumeBindingArgs}
"""What limits the time of things that take none here."""
_MAX_WEIGHT = 100
_MAX_PERCENT = 100
_MAX_SHAPE_SCORE = 10
_SECOND = 1_000_000


def read_arguments(plugin: str, given: Mapping[str, Any], path: str, faults: Faults) -> Wire | None:
    """The arguments of a plugin, None for one that takes none."""
    for name, expected in (("apiVersion", API_VERSION), ("kind", f"{plugin}Args")):
        if given.get(name) not in (None, expected):
            faults.add(below(path, name), f"expected {expected}, not {shown(given[name])}")
    given = {name: value for name, value in given.items() if name not in ("apiVersion", "kind")}
    kind = PLUGINS[plugin].args or _WITHOUT_EFFECT.get(plugin)
    if kind is None:
        for name in given:
            faults.add(below(path, name), f"unknown field; {plugin} takes no arguments")
        return None
    args, fitted = fit(_with_weights(given), kind, path, faults)
    for place, message in _RULES[kind](args, fitted):
        faults.add(below(path, place), message)
    return args


def _with_weights(given: Mapping[str, Any]) -> dict[str, Any]:
    """Without what counts as not given: an empty list of resources, a weight of 0."""
    found = dict(given)
    if isinstance(strategy := given.get("scoringStrategy"), Mapping):
        found["scoringStrategy"] = _with_weights(strategy)
    if isinstance(resources := given.get("resources"), list | tuple):
        found["resources"] = [
            {key: value for key, value in each.items() if (key, value) != ("weight", 0)}
            if isinstance(each, Mapping)
            else each
            for each in resources
        ] or None
    return found


def _preemption(args: DefaultPreemptionArgs, _: Mapping[str, Any]) -> Iterator[Problem]:
    share, number = "minCandidateNodesPercentage", "minCandidateNodesAbsolute"
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    yield from _within(share, percentage, 0, _MAX_PERCENT)
    if absolute < 0:
        yield number, invalid(absolute, "not in valid range [0, inf)")
    if percentage == absolute == 0:
        yield share, invalid(0, f"cannot be zero at the same time as {number}")
        yield number, invalid(0, f"cannot be zero at the same time as {share}")


def _pod_affinity(args: InterPodAffinityArgs, _: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _within("hardPodAffinityWeight", args.hard_pod_affinity_weight, 0, _MAX_WEIGHT)


def _spread(args: PodTopologySpreadArgs, _: Mapping[str, Any]) -> Iterator[Problem]:
    if args.defaulting_type == "System" and args.default_constraints:
        yield "defaultingType", invalid("System", "when .defaultConstraints are not empty")
    seen = set()
    for i, constraint in enumerate(args.default_constraints):
        path = f"defaultConstraints[{i}]"
        yield from _constraint(constraint, path)
        what = f"{{{constraint.topology_key}, {constraint.when_unsatisfiable}}}"
        if what in seen:
            yield path, f"Duplicate value: {shown(what)}"
        seen.add(what)


def _constraint(constraint: TopologySpreadConstraint, path: str) -> Iterator[Problem]:
    if constraint.max_skew <= 0:
        yield f"{path}.maxSkew", invalid(constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        yield f"{path}.topologyKey", "Required value: can not be empty"
    else:
        yield from _label_names(f"{path}.topologyKey", constraint.topology_key)
    if not constraint.when_unsatisfiable:
        yield f"{path}.whenUnsatisfiable", "Required value: can not be empty"
    elif constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
        given = shown(constraint.when_unsatisfiable)
        supported = 'supported values: "DoNotSchedule", "ScheduleAnyway"'
        yield f"{path}.whenUnsatisfiable", f"Unsupported value: {given}: {supported}"
    if constraint.label_selector is not None:
        words = "constraint must not define a selector, as they deduced for each pod"
        yield f"{path}.labelSelector", f"Forbidden: {words}"


def _node_affinity(args: NodeAffinityArgs, _: Mapping[str, Any]) -> Iterator[Problem]:
    if args.added_affinity is not None:
        for problem in _terms(args.added_affinity):
            place, message = problem.split(": ", 1)
            yield f"addedAffinity.{place}", message


def _terms(affinity: NodeAffinity) -> Iterator[str]:
    if affinity.required is not None:
        for term in node_terms(affinity.required.node_selector_terms):
            for problem in term.problems:
                yield f"requiredDuringSchedulingIgnoredDuringExecution.{problem}"
    try:
        preferred_terms(affinity.preferred)
    except SelectorError as error:
        for problem in error.problems:
            index, rest = problem.split(".", 1)  # upstream leaves out that the term stands under `preference`
            yield f"preferredDuringSchedulingIgnoredDuringExecution{index}.preference.{rest}"


def _balanced(args: NodeResourcesBalancedAllocationArgs, _: Mapping[str, Any]) -> Iterator[Problem]:
    seen = set()
    for i, resource in enumerate(args.resources):
        if resource.name in seen:
            yield f"resources[{i}].name", f"Duplicate value: {shown(resource.name)}"
        seen.add(resource.name)
        if resource.weight != 1:
            yield f"resources[{i}].weight", invalid(resource.weight, "must be 1")


def _fit(args: NodeResourcesFitArgs, given: Mapping[str, Any]) -> Iterator[Problem]:
    for i, resource in enumerate(args.ignored_resources):
        yield from _label_names(f"ignoredResources[{i}]", resource)
    for i, group in enumerate(args.ignored_resource_groups):
        if "/" in group:
            yield f"ignoredResourceGroups[{i}]", invalid(group, "resource group name can't contain '/'")
        yield from _label_names(f"ignoredResourceGroups[{i}]", group)
    if "scoringStrategy" in given:
        for place, message in _strategy(args.scoring_strategy, given["scoringStrategy"]):
            yield f"scoringStrategy.{place}", message


def _strategy(strategy: ScoringStrategy, given: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _resources(strategy.resources)
    ratio = strategy.requested_to_capacity_ratio
    if "type" not in given:
        yield "type", "Required value: LeastAllocated, MostAllocated or RequestedToCapacityRatio"
    elif strategy.type != "RequestedToCapacityRatio":
        if ratio is not None:
            yield "requestedToCapacityRatio", "Forbidden: must be nil when type is not RequestedToCapacityRatio"
    elif ratio is None:
        yield "requestedToCapacityRatio", "Required value: must be specified when type is RequestedToCapacityRatio"
    else:
        yield from _shape(ratio.shape, "requestedToCapacityRatio.shape")


def _resources(resources: Iterable[ResourceSpec]) -> Iterator[Problem]:
    for i, resource in enumerate(resources):
        if not 0 < resource.weight <= _MAX_WEIGHT:
            words = f"resource weight of {resource.name} not in valid range (0, {_MAX_WEIGHT}]"
            yield f"resources[{i}].weight", invalid(resource.weight, words)


def _shape(shape: tuple[ShapePoint, ...], path: str) -> Iterator[Problem]:
    if not shape:
        yield path, "Required value: at least one point must be specified"
    for i, point in enumerate(shape):
        yield from _within(f"{path}[{i}].utilization", point.utilization, 0, _MAX_PERCENT)
        yield from _within(f"{path}[{i}].score", point.score, 0, _MAX_SHAPE_SCORE)
    for i in range(1, len(shape)):
        if shape[i - 1].utilization >= shape[i].utilization:
            words = "values must be sorted in increasing order"
            yield f"{path}[{i}].utilization", invalid(shape[i].utilization, words)
            return


def _volumes(args: VolumeBindingArgs, _: Mapping[str, Any]) -> Iterator[Problem]:
    if args.bind_timeout_seconds < 0:
        words = "invalid BindTimeoutSeconds, should not be a negative value"
        yield "bindTimeoutSeconds", invalid(args.bind_timeout_seconds, words)
    if args.shape:
        yield "shape", "unexpected field `shape`, remove it: the feature gate StorageCapacityScoring is off"


def _claims(args: DynamicResourcesArgs, _: Mapping[str, Any]) -> Iterator[Problem]:
    yield from _at_least("filterTimeout", args.filter_timeout, 0, "must be zero or positive")
    yield from _at_least("bindingTimeout", args.binding_timeout, _SECOND, "must be at least 1 second")


def _at_least(path: str, duration: str, least: int, words: str) -> Iterator[Problem]:
    try:
        if parse_duration(duration) < least:
            yield path, invalid(duration, words)
    except DurationError as error:
        yield path, error.message


def _within(path: str, value: int, least: int, most: int) -> Iterator[Problem]:
    if not least <= value <= most:
        yield path, invalid(value, f"not in valid range [{least}, {most}]")


def _label_names(path: str, name: str) -> Iterator[Problem]:
    for problem in label_key_problems(name):
        yield path, invalid(name, problem)


def _expected(args: FgdArgs, _: Mapping[str, Any]) -> Iterator[Problem]:
    for number, pod in enumerate(args.typical_pods):
        place = f"typicalPods[{number}]"
        for name, value in (("cpuMilli", pod.cpu_milli), ("gpus", pod.gpus)):
            if value < 0:
                yield f"{place}.{name}", invalid(value, "must not be negative")
        if pod.gpus > 0 and not 0 < pod.gpu_milli <= WHOLE:
            yield f"{place}.gpuMilli", invalid(pod.gpu_milli, f"not in valid range [1-{WHOLE}]")
        if not pod.weight > 0:
            yield f"{place}.weight", invalid(pod.weight, "must be greater than 0")


_RULES: dict[type[Wire], Callable[[Any, Mapping[str, Any]], Iterator[Problem]]] = {
    DefaultPreemptionArgs: _preemption,
    DynamicResourcesArgs: _claims,
    InterPodAffinityArgs: _pod_affinity,
    NodeAffinityArgs: _node_affinity,
    NodeResourcesBalancedAllocationArgs: _balanced,
    NodeResourcesFitArgs: _fit,
    PodTopologySpreadArgs: _spread,
    VolumeBindingArgs: _volumes,
    FgdArgs: _expected,
    RandomArgs: lambda *_: iter(()),
}
