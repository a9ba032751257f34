"""Recording Events without drowning in them: repeats are counted, look-alikes combined, chatterers cut short.

As client-go's correlator: the same Event again raises a count; from the tenth look-alike within ten minutes on (same
object, reason and type, other words) one Event stands for all of them; and each component may speak of each object 25
times, then once in five minutes. Source of truth: client-go tools/record/events_cache.go.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from bayplan.cluster.embedded.controllers.contract import Emit
from bayplan.cluster.embedded.server import Server
from bayplan.cluster.kinds import EVENT
from bayplan.cluster.objects import Object
from bayplan.model.clock import SECOND, Instant, rfc3339

_COMBINED_FROM = 10
_COMBINED_WITHIN = 600 * SECOND
_BURST = 25
_REFILL = 300 * SECOND
_MOST = 4096
"""Objects and look-alikes remembered at a time, as upstream's caches."""


class _Allowance(msgspec.Struct):
    """What is left of a component's say about an object: a token bucket."""

    tokens: float
    at: Instant

    def take(self, now: Instant) -> bool:
        self.tokens = min(_BURST, self.tokens + (now - self.at) / _REFILL)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class _LookAlikes(msgspec.Struct):
    """The different messages of one reason about one object, lately."""

    messages: set[str]
    at: Instant


class Recorder:
    """Where Events go. What it remembers is only how much was said; the Events themselves are in the store."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._allowances: OrderedDict[tuple[str, ...], _Allowance] = OrderedDict()
        self._look_alikes: OrderedDict[tuple[str, ...], _LookAlikes] = OrderedDict()

    def record(self, event: Emit, message: str) -> None:
        """Store an Event, count it on an earlier one, or drop it when there is too much of it."""
        now = self._server.now()
        subject = (event.about.uid or event.about.name, event.component, event.type, event.reason)
        identity: tuple[str, ...] = (*subject, event.field, message)
        if self._is_one_of_many(subject, message, now):
            message, identity = f"(combined from similar events): {message}", subject
        allowance = _remembered(self._allowances, subject[:2], lambda: _Allowance(_BURST, now))
        if allowance.take(now):
            self._write(event, message, identity, rfc3339(now))

    def _is_one_of_many(self, subject: tuple[str, ...], message: str, now: Instant) -> bool:
        seen = _remembered(self._look_alikes, subject, lambda: _LookAlikes(set(), now))
        if now - seen.at > _COMBINED_WITHIN:
            seen.messages.clear()
        seen.at = now
        if message in seen.messages:
            return len(seen.messages) >= _COMBINED_FROM
        if len(seen.messages) < _COMBINED_FROM:
            seen.messages.add(message)
        return len(seen.messages) >= _COMBINED_FROM

    def _write(self, event: Emit, message: str, identity: tuple[str, ...], now: str) -> None:
        about = event.about
        namespace = about.namespace or "default"
        digest = hashlib.blake2b("\0".join(identity).encode(), digest_size=8).hexdigest()
        name = f"{about.name}.{digest}"
        known = self._server.store.get(EVENT, namespace, name)
        if known is not None:
            count = known.sections["count"].plain() + 1
            changed: dict[str, Any] = {"count": count, "lastTimestamp": now, "message": message}
            self._server.replace_sections(known, changed)
            return
        self._server.insert(EVENT, _document(event, message, namespace, name, now))


def _document(event: Emit, message: str, namespace: str, name: str, now: str) -> dict[str, Any]:
    related = {} if event.related is None else {"related": _reference(event.related)}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": _reference(event.about, event.field),
        "reason": event.reason,
        "message": message,
        "source": {"component": event.component, "host": event.host} if event.host else {"component": event.component},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "type": event.type,
        "eventTime": None,
        **related,
        "reportingComponent": event.component,
        "reportingInstance": event.host,
    }


def _reference(about: Object, field: str = "") -> dict[str, str]:
    named = {
        "kind": about.kind.name,
        "namespace": about.namespace,
        "name": about.name,
        "uid": about.uid,
        "apiVersion": about.kind.api_version,
        "resourceVersion": about.meta.resource_version,
        "fieldPath": field,
    }
    return {key: value for key, value in named.items() if value}


K = TypeVar("K")
V = TypeVar("V")


def _remembered(cache: OrderedDict[K, V], key: K, make: Callable[[], V]) -> V:
    """The value of a key, made on first use; the key used longest ago is forgotten when there are too many."""
    value = cache.get(key)
    if value is None:
        value = cache[key] = make()
        if len(cache) > _MOST:
            cache.popitem(last=False)
    else:
        cache.move_to_end(key)
    return value
