"""Requests, limits and claims: which resource names there are, and which amounts of each make sense.

A name without a slash belongs to Kubernetes and must be a known one; a name of another domain is an extended resource:
counted in whole units, never overcommitted, so its limit is its request. Hugepages come in whole pages and are not
overcommitted either.

Source of truth: pkg/apis/core/validation, validateResourceRequirements; pkg/apis/core/helper; core/v1/defaults.go.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.syntax import dns1123_label, qualified_name
from bayplan.model.quantity import NANOS, Quantity, QuantityError, parse

NEGATIVE = "must be greater than or equal to 0"
NOT_AN_INTEGER = "must be an integer"

_HUGEPAGES = "hugepages-"
_COMPUTE = frozenset({"cpu", "memory", "ephemeral-storage"})
_POD_LEVEL = ("cpu", _HUGEPAGES, "memory")
_COUNTS = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_STANDARD = (
    _COMPUTE
    | _COUNTS
    | {f"{side}.{name}" for side in ("requests", "limits") for name in _COMPUTE}
    | {"storage", "requests.storage"}
)


def is_hugepages(name: str) -> bool:
    """`hugepages-2Mi` and its like."""
    return name.startswith(_HUGEPAGES)


def is_native(name: str) -> bool:
    """A resource of Kubernetes itself: no domain, or one that ends in kubernetes.io."""
    return "/" not in name or "kubernetes.io/" in name


@lru_cache(maxsize=1024)
def is_extended(name: str) -> bool:
    """A resource of another domain, whose name also fits a quota (`requests.example.com/gpu`)."""
    return not is_native(name) and not name.startswith("requests.") and not qualified_name(f"requests.{name}")


def is_integer(name: str) -> bool:
    """Whether there is no half of it: object counts and extended resources."""
    return name in _COUNTS or is_extended(name)


def overcommits(name: str) -> bool:
    """Whether a limit may be above its request."""
    return is_native(name) and not is_hugepages(name)


@lru_cache(maxsize=1024)
def resource_name_faults(name: str) -> list[str]:
    """What is wrong with the name of any resource, wherever it stands."""
    if faults := qualified_name(name):
        return faults
    if "/" in name or name in _STANDARD or name.startswith((_HUGEPAGES, f"requests.{_HUGEPAGES}")):
        return []
    return ["must be a standard resource type or fully qualified"]


@lru_cache(maxsize=1024)
def container_resource_name_faults(name: str) -> list[str]:
    """What is wrong with the name of a resource that a container asks for."""
    faults = resource_name_faults(name)
    if "/" not in name:
        known = name in _COMPUTE or is_hugepages(name)
        return faults if known else [*faults, "must be a standard resource for containers"]
    if is_native(name) or is_extended(name):
        return faults
    return [*faults, "doesn't follow extended resource name standard"]


def validate_quantity_value(name: str, text: str, path: str, errors: Errors) -> None:
    """An amount of the resource `name`: not negative, and whole where it is counted."""
    amount = parse(text)
    if amount.nanos < 0:
        errors.invalid(path, text, NEGATIVE)
    if is_integer(name) and amount.milli() % 1000:
        errors.invalid(path, text, NOT_AN_INTEGER)


def validate_resource_requirements(
    resources: Doc, path: str, errors: Errors, *, pod_level: bool = False, claim_names: Collection[str] = ()
) -> None:
    """Limits, requests and claims of a container, or of the whole pod. `claim_names` are the pod's resource claims.

    Pod overhead is checked as `{"limits": overhead}`.
    """
    limits: dict[str, str] = resources.get("limits", {})
    requests: dict[str, str] = resources.get("requests", {})
    for side, amounts in (("limits", limits), ("requests", requests)):
        for name, text in amounts.items():
            if not _good_amount(name, text, pod_level):
                _validate_amount(name, text, f"{path}.{side}[{name}]", errors, pod_level=pod_level)
    for name, text in requests.items():
        _validate_against_limit(name, text, limits, path, errors)
    asked = limits.keys() | requests.keys()
    if "cpu" not in asked and "memory" not in asked and any(is_hugepages(name) for name in asked):
        errors.forbidden(path, "HugePages require cpu or memory")
    if claims := resources.get("claims"):
        _validate_claims(claims, f"{path}.claims", errors, claim_names)


@lru_cache(maxsize=4096)
def _good_amount(name: str, text: str, pod_level: bool) -> bool:
    """Whether `_validate_amount` finds nothing: the same few amounts come again and again."""
    errors = Errors()
    _validate_amount(name, text, "", errors, pod_level=pod_level)
    return not errors


def _validate_amount(name: str, text: str, path: str, errors: Errors, *, pod_level: bool) -> None:
    for fault in resource_name_faults(name) if pod_level else container_resource_name_faults(name):
        errors.invalid(path, name, fault)
    if pod_level and not resource_name_faults(name) and name not in _POD_LEVEL and not is_hugepages(name):
        errors.not_supported(path, name, _POD_LEVEL)
    validate_quantity_value(name, text, path, errors)
    if is_hugepages(name) and not _whole_pages(name, parse(text)):
        errors.invalid(path, text, f"{text} is not positive integer multiple of {name}")


def _whole_pages(name: str, amount: Quantity) -> bool:
    try:
        page = parse(name.removeprefix(_HUGEPAGES))
    except QuantityError:
        return False
    return page.nanos > 0 and page.milli() % 1000 == 0 and amount.value() % page.value() == 0


def _validate_against_limit(name: str, text: str, limits: Mapping[str, str], path: str, errors: Errors) -> None:
    limit = limits.get(name)
    if limit is None:
        if not overcommits(name):
            errors.required(f"{path}.limits", "Limit must be set for non overcommitable resources")
        return
    if limit == text:
        return
    request, most = parse(text), parse(limit)
    if request != most and not overcommits(name):
        errors.invalid(f"{path}.requests", text, f"must be equal to {name} limit of {limit}")
    elif request > most:
        errors.invalid(f"{path}.requests", text, f"must be less than or equal to {name} limit of {limit}")


def _validate_claims(claims: Sequence[Doc], path: str, errors: Errors, known: Collection[str]) -> None:
    used: set[str] = set()
    for i, claim in enumerate(claims):
        name = claim.get("name", "")
        if not name:
            errors.required(f"{path}[{i}]")
            continue
        _validate_claim_use(name, claim.get("request", ""), f"{path}[{i}]", errors, used)
        if name not in known:
            listed = f": {', '.join(sorted(known))}" if known else " which is empty"
            errors.not_found(f"{path}[{i}]", name, f"must be one of the names in pod.spec.resourceClaims{listed}")


def _validate_claim_use(name: str, request: str, path: str, errors: Errors, used: set[str]) -> None:
    """A claim is used whole once, or each of its requests once; `used` holds `claim` and `claim/request`."""
    if name in used:
        errors.duplicate(path, name)
        return
    for fault in dns1123_label(request) if request else ():
        errors.invalid(f"{path}.request", request, fault)
    key = f"{name}/{request}" if request else name
    if key in used:
        errors.duplicate(path, key)
    elif not request and any(other.startswith(f"{name}/") for other in used):
        errors.duplicate(path, name)
    used.add(key)


_FINEST = NANOS // 1000


def round_resource_list(amounts: dict[str, str]) -> None:
    """Round every amount up to whole thousandths, in place: the finest step that the API keeps."""
    for name, text in amounts.items():
        if text[-1] in "nu" or not text.isalnum():
            amount = parse(text)
            if amount.nanos % _FINEST:
                amounts[name] = str(Quantity.of_milli(amount.milli(), amount.format))


def default_resources(resources: Doc, *, template: bool) -> None:
    """Amounts rounded; in a pod each limit is also the request if there is none. A template leaves that to its pods."""
    if limits := resources.get("limits"):
        round_resource_list(limits)
        if not template:
            resources["requests"] = {**limits, **resources.get("requests", {})}
    if requests := resources.get("requests"):
        round_resource_list(requests)
