"""Which objects a list or watch is about: namespace, labels and the few fields that each kind lets select by."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bayplan.cluster.kinds import (
    EVENT,
    JOB,
    NAMESPACE,
    NODE,
    POD,
    REPLICATION_CONTROLLER,
    SECRET,
    SERVICE,
    Kind,
    is_built_in,
)
from bayplan.cluster.objects import Object
from bayplan.model.errors import BadRequest
from bayplan.model.field_selectors import FieldSelector, parse_field_selector
from bayplan.model.pods import Pod
from bayplan.model.policies import Event
from bayplan.model.selector_text import parse_selector
from bayplan.model.selectors import SelectorError

Reader = Callable[[Object], dict[str, str]]


def _pod(item: Object) -> dict[str, str]:
    pod = item.view(Pod)
    return {
        "spec.nodeName": pod.spec.node_name,
        "spec.restartPolicy": pod.spec.restart_policy,
        "spec.schedulerName": pod.spec.scheduler_name,
        "spec.serviceAccountName": pod.spec.service_account_name,
        "spec.hostNetwork": str(pod.spec.host_network).lower(),
        "status.phase": pod.status.phase,
        "status.podIP": pod.status.pod_ip,
        "status.nominatedNodeName": pod.status.nominated_node_name,
    }


def _event(item: Object) -> dict[str, str]:
    event = item.view(Event)
    about = event.involved_object
    return {
        "involvedObject.kind": about.kind,
        "involvedObject.namespace": about.namespace,
        "involvedObject.name": about.name,
        "involvedObject.uid": about.uid,
        "involvedObject.apiVersion": about.api_version,
        "involvedObject.resourceVersion": about.resource_version,
        "involvedObject.fieldPath": about.field_path,
        "reason": event.reason,
        "reportingComponent": event.reporting_component,
        "source": event.source.component,
        "type": event.type,
    }


def _section(**fields: tuple[str, object]) -> Reader:
    """Fields of sections, each with its path and Go's zero: for kinds that are selected by them seldom."""

    def read(item: Object) -> dict[str, str]:
        values = {}
        for name, (path, zero) in fields.items():
            section, *steps = path.split(".")
            value = item.sections[section].plain() if section in item.sections else zero
            for step in steps:
                value = value.get(step, zero) if isinstance(value, dict) else value
            values[name.replace("_", ".")] = str(value).lower() if isinstance(value, bool) else str(value)
        return values

    return read


_READERS: Mapping[Kind, Reader] = {
    POD: _pod,
    EVENT: _event,
    NODE: _section(spec_unschedulable=("spec.unschedulable", False)),
    NAMESPACE: _section(status_phase=("status.phase", "")),
    SECRET: _section(type=("type", "")),
    SERVICE: _section(spec_type=("spec.type", ""), spec_clusterIP=("spec.clusterIP", "")),
    JOB: _section(status_successful=("status.succeeded", 0)),
    REPLICATION_CONTROLLER: _section(status_replicas=("status.replicas", 0)),
}
_FIELDS = {kind: (read, frozenset(read(Object.from_raw(kind, b"{}")))) for kind, read in _READERS.items()}
_COMMON = frozenset(("metadata.name", "metadata.namespace"))


def _unsupported(kind: Kind, field: str) -> str:
    if kind is JOB:
        return f'field label "{field}" not supported for Job'
    if kind in _FIELDS or not is_built_in(kind):
        return f"field label not supported: {field}"
    return f'"{field}" is not a known field selector: only "metadata.name", "metadata.namespace"'


class Selection:
    """A compiled question: does this object belong to the list or watch?"""

    def __init__(self, kind: Kind, namespace: str | None, labels: str = "", fields: str = "") -> None:
        """Raises BadRequest for a selector that cannot be read or a field that the kind does not select by."""
        self.kind = kind
        self.namespace = namespace
        try:
            self._labels = parse_selector(labels) if labels else None
            self._fields: FieldSelector | None = parse_field_selector(fields) if fields else None
        except SelectorError as error:
            raise BadRequest(str(error)) from error
        reader, known = _FIELDS.get(kind, (None, frozenset()))
        self._reader = reader
        for term in self._fields.terms if self._fields else ():
            if term.field not in known and term.field not in _COMMON:
                raise BadRequest(_unsupported(kind, term.field))

    @property
    def everything(self) -> bool:
        """Whether every object of the kind belongs."""
        return self.namespace is None and self._labels is None and self._fields is None

    def exact(self, field: str) -> str | None:
        """The one value that a field must have, if there is one."""
        return None if self._fields is None else self._fields.exact(field)

    def matches(self, item: Object) -> bool:
        """Whether an object belongs."""
        if self.namespace is not None and item.meta.namespace != self.namespace:
            return False
        if self._labels is not None and not self._labels.matches(item.meta.labels):
            return False
        return self._fields is None or self._fields.matches(self._values(item))

    def _values(self, item: Object) -> dict[str, str]:
        values = {"metadata.name": item.name, "metadata.namespace": item.namespace}
        return values if self._reader is None else {**values, **self._reader(item)}
