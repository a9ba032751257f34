"""What the containers of a virtual pod use at an instant: CPU, memory, and a share of their GPUs.

The curves come from annotations (`cpu`, `memory`, `gpu`); without them a container uses a believable part of what it
asked for. Usage is a function of pod and time: asking twice, or never, changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from bayplan.cluster.embedded.kubelet.behaviour import USUAL, Behaviour, Defaults, chance, manners
from bayplan.cluster.embedded.kubelet.curves import Curve, read_curve
from bayplan.cluster.embedded.kubelet.run import instant
from bayplan.cluster.objects import Object
from bayplan.model.clock import Instant
from bayplan.model.pods import Container, Pod, ResourceRequirements
from bayplan.model.quantity import NANOS, parse
from bayplan.model.resources import CPU, MEMORY

_USUAL_CPU = read_curve("constant 60%")
_USUAL_MEMORY = read_curve("ramp from=30% to=75% over=10m")
_USUAL_GPU = read_curve("constant 85%")
_UNASKED = {CPU: 0.1, MEMORY: 128 * 1024 * 1024}  # what a container without a request is taken to have asked for
_SPREAD = 0.1  # how much the usual shares differ between pods


class Usage(NamedTuple):
    """Thousandths of a core, bytes, and how busy the pod's GPUs are on average, 0 to 1."""

    cpu: int = 0
    memory: int = 0
    gpu: float = 0.0


def usage(pod: Object, now: Instant, defaults: Defaults = USUAL) -> Usage:
    """What a pod uses. Nothing, unless containers of it run."""
    containers = container_usage(pod, now, defaults)
    view = pod.view(Pod)
    gpus = {each.name: _gpus(each) for each in (*view.spec.init_containers, *view.spec.containers)}
    held = sum(gpus[name] for name in containers)
    busy = sum(gpus[name] * each.gpu for name, each in containers.items())
    cpu = sum(each.cpu for each in containers.values())
    return Usage(cpu, sum(each.memory for each in containers.values()), busy / held if held else 0.0)


def container_usage(pod: Object, now: Instant, defaults: Defaults = USUAL) -> dict[str, Usage]:
    """What each running container uses."""
    view = pod.view(Pod)
    statuses = (*view.status.init_container_statuses, *view.status.container_statuses)
    running = {each.name: each.state.running.started_at for each in statuses if each.state.running is not None}
    if not running:
        return {}
    behaviours = manners(view, defaults).of
    varies = 1 + _SPREAD * (2 * chance(view.metadata.uid, "usage") - 1)
    found = {}
    for container in (*view.spec.init_containers, *view.spec.containers):
        if container.name in running:
            since = instant(running[container.name]) or now
            found[container.name] = _of(container, behaviours[container.name], since, max(now, since), varies)
    return found


def _of(container: Container, behaviour: Behaviour, since: Instant, now: Instant, varies: float) -> Usage:
    def level(own: Curve | None, usual: Curve, asked: float) -> float:
        return own.at(since, now, asked) if own is not None else varies * usual.at(since, now, asked)

    cpu = level(behaviour.cpu, _USUAL_CPU, _asked(container.resources, CPU))
    memory = level(behaviour.memory, _USUAL_MEMORY, _asked(container.resources, MEMORY))
    gpu = min(level(behaviour.gpu, _USUAL_GPU, 1.0), 1.0) if _gpus(container) else 0.0
    limits = container.resources.limits
    return Usage(
        round(min(cpu, _amount(limits, CPU)) * 1000),
        round(min(memory, _amount(limits, MEMORY))),
        gpu,
    )


def _asked(resources: ResourceRequirements, name: str) -> float:
    """What a curve's shares are shares of: the request, else the limit, else something small."""
    text = resources.requests.get(name) or resources.limits.get(name)
    return parse(text).nanos / NANOS if text else _UNASKED[name]


def _amount(limits: dict[str, str], name: str) -> float:
    """A limit in units: nothing uses more; without one, no bound."""
    return parse(limits[name]).nanos / NANOS if name in limits else float("inf")


def _gpus(container: Container) -> int:
    """How many GPUs a container holds, of whichever vendor."""
    asked = {**container.resources.limits, **container.resources.requests}
    return sum(parse(text).value() for name, text in asked.items() if name.endswith("/gpu"))
