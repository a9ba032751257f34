"""A Deployment and its ReplicaSets: which is the new one, how large each is to be.

All sizes come from here, as `Resize` values in the order in which they are to be made. Source of truth:
pkg/controller/deployment: rolling.go, sync.go (scale) and util.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from bayplan.cluster.embedded.controllers.shares import resolved
from bayplan.cluster.embedded.controllers.stamping import same_template
from bayplan.model.workloads import Deployment, ReplicaSet

REVISION = "deployment.kubernetes.io/revision"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
_MAX_INT32 = 2**31 - 1


class Parts(msgspec.Struct, frozen=True):
    """The ReplicaSets of a Deployment. `new` is the oldest whose template is the Deployment's; `old` by age."""

    new: ReplicaSet | None
    old: tuple[ReplicaSet, ...]

    @property
    def all(self) -> tuple[ReplicaSet, ...]:
        """Old and new."""
        return self.old if self.new is None else (*self.old, self.new)


class Resize(msgspec.Struct, frozen=True):
    """A ReplicaSet's next size. `size` may be what it is already: then only its annotations may have to change."""

    part: ReplicaSet
    size: int


def split(wanted: Deployment, owned: Iterable[ReplicaSet]) -> Parts:
    """The new ReplicaSet and the others."""
    by_age = sorted(owned, key=_age)
    new = next((one for one in by_age if same_template(one.spec.template, wanted.spec.template)), None)
    return Parts(new, tuple(one for one in by_age if one is not new))


def is_rolling(wanted: Deployment) -> bool:
    """Whether old pods go bit by bit."""
    return wanted.spec.strategy.type == "RollingUpdate"


def max_surge(wanted: Deployment) -> int:
    """How many pods there may be beyond those asked for."""
    return _fenceposts(wanted)[0] if is_rolling(wanted) else 0


def max_unavailable(wanted: Deployment) -> int:
    """How many of the pods asked for may be missing."""
    replicas = wanted.spec.replicas
    return min(_fenceposts(wanted)[1], replicas) if is_rolling(wanted) and replicas else 0


def _fenceposts(wanted: Deployment) -> tuple[int, int]:
    rolling, replicas = wanted.spec.strategy.rolling_update, wanted.spec.replicas
    surge = resolved(rolling.max_surge, replicas, up=True)
    unavailable = resolved(rolling.max_unavailable, replicas, up=False)
    return surge, unavailable if surge or unavailable else 1  # rounded down to nothing, nothing would ever move


def size_of_new(wanted: Deployment, parts: Parts) -> int:
    """How large the new ReplicaSet may be now: up to what the surge leaves room for."""
    present, replicas = parts.new.spec.replicas if parts.new else 0, wanted.spec.replicas
    if not is_rolling(wanted) or present > replicas:
        return replicas
    room = replicas + max_surge(wanted) - total(parts.all)
    return present + max(min(room, replicas - present), 0)


def shrunk(wanted: Deployment, parts: Parts, new: ReplicaSet) -> list[Resize]:
    """How far the old ReplicaSets may shrink: first by what is not available anyway, then by what is not needed."""
    old = active(parts.old)
    least = wanted.spec.replicas - max_unavailable(wanted)
    spare = total((*old, new)) - least - (new.spec.replicas - new.status.available_replicas)
    if not old or spare <= 0:
        return []
    resizes, sizes = [], {one.metadata.name: one.spec.replicas for one in old}
    for one in old:
        sick = min(spare, one.spec.replicas - one.status.available_replicas)
        if sick > 0:
            spare -= sick
            sizes[one.metadata.name] -= sick
            resizes.append(Resize(one, sizes[one.metadata.name]))
    excess = sum(one.status.available_replicas for one in (*old, new)) - least
    for one in old:
        going = min(sizes[one.metadata.name], excess)
        if going > 0:
            excess -= going
            sizes[one.metadata.name] -= going
            resizes.append(Resize(one, sizes[one.metadata.name]))
    return resizes


def is_scaled(wanted: Deployment, parts: Parts) -> bool:
    """Whether the Deployment's size has changed since its ReplicaSets were told."""
    desired = (_count(one, DESIRED_REPLICAS) for one in active(parts.all))
    return any(count is not None and count != wanted.spec.replicas for count in desired)


def rescaled(wanted: Deployment, parts: Parts) -> list[Resize]:
    """A change of size outside of a rollout: the one that runs takes it all, several take it in proportion."""
    running = active(parts.all)
    if len(running) <= 1:
        one = running[0] if running else parts.new or (parts.old[-1] if parts.old else None)
        return [] if one is None or one.spec.replicas == wanted.spec.replicas else [Resize(one, wanted.spec.replicas)]
    if parts.new is not None and _is_saturated(wanted, parts.new):
        return [Resize(one, 0) for one in active(parts.old)]
    return _in_proportion(wanted, running) if is_rolling(wanted) else []


def _is_saturated(wanted: Deployment, new: ReplicaSet) -> bool:
    replicas = wanted.spec.replicas
    return new.spec.replicas == replicas == _count(new, DESIRED_REPLICAS) == new.status.available_replicas


def _in_proportion(wanted: Deployment, running: Sequence[ReplicaSet]) -> list[Resize]:
    """Larger ones first; of equals the newer grow first and the older shrink first; the rest goes to the first."""
    allowed = wanted.spec.replicas + max_surge(wanted) if wanted.spec.replicas else 0
    change = allowed - total(running)
    ordered = sorted(running, key=_age, reverse=change > 0)
    ordered.sort(key=lambda one: -one.spec.replicas)
    left, sizes = change, []
    for one in ordered:
        share = _share(wanted, one) if left else 0
        share = min(share, left) if change > 0 else max(share, left)
        left -= share
        sizes.append(one.spec.replicas + share)
    sizes[0] = max(sizes[0] + left, 0)
    return [Resize(one, size) for one, size in zip(ordered, sizes, strict=True)]


def _share(wanted: Deployment, one: ReplicaSet) -> int:
    size = one.spec.replicas
    if not wanted.spec.replicas:
        return -size
    before = _count(one, MAX_REPLICAS) or wanted.status.replicas
    if not before:
        return 0
    return int(size * (wanted.spec.replicas + max_surge(wanted)) / before + 0.5) - size


def active(parts: Iterable[ReplicaSet]) -> list[ReplicaSet]:
    """Those that want pods."""
    return [one for one in parts if one.spec.replicas > 0]


def total(parts: Iterable[ReplicaSet]) -> int:
    """How many pods they want together."""
    return sum(one.spec.replicas for one in parts)


def revision_of(one: ReplicaSet) -> int:
    """The number of its turn; 0 if it has none that can be read."""
    text = one.metadata.annotations.get(REVISION, "")
    return int(text) if text.isascii() and text.isdigit() else 0


def surplus(wanted: Deployment, old: Sequence[ReplicaSet]) -> list[ReplicaSet]:
    """The old ReplicaSets beyond the history limit, of which nothing runs any more."""
    limit = wanted.spec.revision_history_limit
    alive = sorted(
        (one for one in old if one.metadata.deletion_timestamp is None), key=lambda one: (revision_of(one), *_age(one))
    )
    if limit == _MAX_INT32 or len(alive) <= limit:
        return []
    return [one for one in alive[: len(alive) - limit] if _is_settled_empty(one)]


def _is_settled_empty(one: ReplicaSet) -> bool:
    observed = one.status.observed_generation >= one.metadata.generation
    return observed and not one.spec.replicas and not one.status.replicas


def _age(one: ReplicaSet) -> tuple[str, str]:
    return (one.metadata.creation_timestamp or "", one.metadata.name)


def _count(one: ReplicaSet, annotation: str) -> int | None:
    text = one.metadata.annotations.get(annotation, "")
    return int(text) if text.isascii() and text.isdigit() and int(text) <= _MAX_INT32 else None
