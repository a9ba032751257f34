"""Probes and lifecycle hooks: one handler each, and numbers that make sense.

Source of truth: pkg/apis/core/validation, validateProbe, validateHandler, validateLifecycle; v1 defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bayplan.cluster.embedded.admission.fields import Doc, Errors
from bayplan.cluster.embedded.admission.syntax import http_header_name, port_name, port_number

PROBES = ("livenessProbe", "readinessProbe", "startupProbe")

_NUMBERS = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_DEFAULTS = (("timeoutSeconds", 1), ("periodSeconds", 10), ("successThreshold", 1), ("failureThreshold", 3))
_PROBE_HANDLERS = ("exec", "httpGet", "tcpSocket", "grpc")
_HOOK_HANDLERS = ("exec", "httpGet", "tcpSocket", "sleep")
_SCHEMES = ("HTTP", "HTTPS")


def validate_probes(container: Doc, path: str, errors: Errors) -> None:
    """The probes of a container that may have them; `path` is the container's."""
    for kind in PROBES:
        probe = container.get(kind)
        if probe is not None:
            _validate_probe(kind, probe, f"{path}.{kind}", errors)


def _validate_probe(kind: str, probe: Doc, path: str, errors: Errors) -> None:
    _validate_handler(probe, _PROBE_HANDLERS, path, errors)
    for name in _NUMBERS:
        if (number := probe.get(name, 0)) < 0:
            errors.invalid(f"{path}.{name}", number, "must be greater than or equal to 0")
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        errors.invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0")
    if kind == "readinessProbe":
        if grace is not None:
            errors.invalid(f"{path}.terminationGracePeriodSeconds", grace, "must not be set for readinessProbes")
    elif (successes := probe.get("successThreshold", 0)) != 1:
        errors.invalid(f"{path}.successThreshold", successes, "must be 1")


def validate_lifecycle(lifecycle: Doc, path: str, errors: Errors, *, grace: int | None) -> None:
    """Hooks after the start and before the stop. `grace`: the seconds that the pod has to stop, if known."""
    for hook in ("postStart", "preStop"):
        handler = lifecycle.get(hook)
        if handler is None:
            continue
        _validate_handler(handler, _HOOK_HANDLERS, f"{path}.{hook}", errors)
        if next((kind for kind in _HOOK_HANDLERS if kind in handler), "") == "sleep":
            _validate_sleep(handler["sleep"].get("seconds", 0), grace, f"{path}.{hook}.sleep", errors)


def _validate_sleep(seconds: int, grace: int | None, path: str, errors: Errors) -> None:
    if grace is not None and not 0 <= seconds <= grace:
        text = f"must be non-negative and less than terminationGracePeriodSeconds ({grace})"
        errors.invalid(path, seconds, text)


def _validate_handler(handler: Doc, kinds: Sequence[str], path: str, errors: Errors) -> None:
    """Exactly one handler: the first counts, the others are forbidden."""
    given = [kind for kind in kinds if kind in handler]
    if not given:
        errors.required(path, "must specify a handler type")
        return
    first, *more = given
    if first in _HANDLERS:
        _HANDLERS[first](handler[first], f"{path}.{first}", errors)
    for kind in more:
        errors.forbidden(f"{path}.{kind}", "may not specify more than 1 handler type")


def _validate_exec(action: Doc, path: str, errors: Errors) -> None:
    if not action.get("command"):
        errors.required(f"{path}.command")


def _validate_http_get(action: Doc, path: str, errors: Errors) -> None:
    if not action.get("path"):
        errors.required(f"{path}.path")
    _validate_port(action, path, errors)
    scheme = action.get("scheme", "")
    if scheme not in _SCHEMES:
        errors.not_supported(f"{path}.scheme", scheme, _SCHEMES)
    for header in action.get("httpHeaders", ()):
        name = header.get("name", "")
        for fault in http_header_name(name):
            errors.invalid(f"{path}.httpHeaders", name, fault)


def _validate_port(action: Doc, path: str, errors: Errors) -> None:
    port = action.get("port", 0)
    for fault in port_name(port) if isinstance(port, str) else port_number(port):
        errors.invalid(f"{path}.port", port, fault)


_HANDLERS: dict[str, Callable[[Doc, str, Errors], None]] = {
    "exec": _validate_exec,
    "httpGet": _validate_http_get,
    "tcpSocket": _validate_port,
    "grpc": _validate_port,
}


def default_probe(probe: Doc) -> None:
    """Every second number a person leaves out; zero counts as left out."""
    for name, number in _DEFAULTS:
        if not probe.get(name):
            probe[name] = number
    _default_http_get(probe)
    grpc = probe.get("grpc")
    if grpc is not None and grpc.get("service") is None:
        grpc["service"] = ""


def default_lifecycle(container: Doc) -> None:
    """Hooks completed. A stop signal is dropped: its feature gate, ContainerStopSignals, is off in 1.36."""
    lifecycle = container["lifecycle"]
    for hook in ("postStart", "preStop"):
        if hook in lifecycle:
            _default_http_get(lifecycle[hook])
    if lifecycle.pop("stopSignal", None) is not None and not lifecycle:
        del container["lifecycle"]


def _default_http_get(handler: Doc) -> None:
    action = handler.get("httpGet")
    if action is not None:
        action.setdefault("path", "/")
        action.setdefault("scheme", "HTTP")
