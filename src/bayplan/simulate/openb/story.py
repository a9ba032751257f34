"""A trace in its own time, as a story that can be replayed: pods come, run and go when they did.

It takes a trace that was read with its times. A pod's phase says whether it had ended by itself. Where its pods were
the trace does not say.
"""

from __future__ import annotations

import msgspec

from bayplan.cluster.kinds import NODE, POD
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant
from bayplan.model.meta import KubernetesObject
from bayplan.simulate.openb.run import node_of, pod_of
from bayplan.simulate.openb.trace import Trace, TraceError, TracePod
from bayplan.simulate.recording.story import PodLife, Story

_ENDED = ("Succeeded", "Failed")


def trace_story(trace: Trace, began: Instant) -> Story:
    """The story of a trace that begins then. Raises TraceError where it was read without times."""
    lives = [_life(pod, began) for pod in trace.pods]
    times = [at for life in lives for at in (life.arrived, life.bound, life.left) if at is not None]
    nodes = [(began, "ADDED", Object.from_raw(NODE, _written(node_of(each)))) for each in trace.nodes]
    return Story(began, max(times, default=began), {life.uid: life for life in lives}, nodes, {}, whole=True)


def _life(pod: TracePod, began: Instant) -> PodLife:
    times = pod.times
    if times is None:
        raise TraceError(f"{pod.name}: no creation_time", hint="bayplan simulate openb takes traces without times")
    bound, left = (None if at is None else _at(began, at) for at in (times.scheduled, times.deleted))
    over = times.phase in _ENDED and bound is not None
    return PodLife(
        uid=pod.name,
        last=Object.from_raw(POD, _written(pod_of(pod))),
        arrived=_at(began, times.created),
        bound=bound,
        started=bound,
        ended=left if over else None,
        failed=times.phase == "Failed",
        gone=None if over else left,
    )


def _at(began: Instant, seconds: float) -> Instant:
    return Instant(began + round(seconds * SECOND))


def _written(thing: KubernetesObject) -> bytes:
    named = msgspec.structs.replace(thing.metadata, uid=thing.metadata.name)
    return msgspec.json.encode(msgspec.structs.replace(thing, metadata=named))
