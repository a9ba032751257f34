"""What can be set. One frozen struct a section; a field's default and description are the documentation's too.

A setting enters here when something reads it. No section may be called `service` or `port`: Kubernetes puts
BAYPLAN_SERVICE_HOST and BAYPLAN_PORT into every pod beside a Service named bayplan.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Protocol, Self, get_args, get_origin, runtime_checkable

import msgspec
from msgspec import Meta

from bayplan.service.durations import Duration
from bayplan.service.levels import Levels
from bayplan.service.port_numbers import PortNumbers
from bayplan.service.resource_patterns import ResourcePatterns


class LogSettings(msgspec.Struct, frozen=True):
    """What is logged, and how it looks."""

    format: Annotated[
        Literal["auto", "text", "json"],
        Meta(description="`text` for people, `json` for one JSON object a line; `auto` is text on a terminal"),
    ] = "auto"
    levels: Annotated[
        Levels, Meta(description="levels by room, as `node.gpu=trace,ledger=debug,info`; BAYPLAN_LOG sets it too")
    ] = Levels()


class HealthSettings(msgspec.Struct, frozen=True):
    """The endpoint with /livez, /readyz, /metrics and /version."""

    bind: Annotated[
        str, Meta(min_length=1, description="address to listen on; `0.0.0.0` in a pod, where the kubelet asks")
    ] = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535, description="port to listen on; 0 takes a free one and logs it")] = 8081


class ShutdownSettings(msgspec.Struct, frozen=True):
    """How a process ends."""

    grace: Annotated[
        Duration, Meta(description="time for closing everything; keep it below the pod's termination grace period")
    ] = Duration(20_000_000)


class ThrottlingSettings(msgspec.Struct, frozen=True):
    """When the agent alerts."""

    alert_percent: Annotated[
        int, Meta(ge=1, le=100, description="alert when more of a group's CPU periods than this are throttled")
    ] = 5
    waiting_percent: Annotated[
        int, Meta(ge=1, le=100, description="alert when threads wait for a CPU more than this share of the time")
    ] = 50
    bursts_per_hour: Annotated[
        int, Meta(ge=1, le=3_600_000, description="alert when more periods an hour use more than their quota")
    ] = 3600
    hold: Annotated[
        Duration, Meta(description="how long a value must stay above its threshold, and then below four fifths of it")
    ] = Duration(60_000_000)


class AgentSettings(msgspec.Struct, frozen=True):
    """The process on a node."""

    interval: Annotated[Duration, Meta(description="time between two looks at all groups")] = Duration(5_000_000)
    most_groups: Annotated[
        int,
        Meta(ge=1, le=100_000, description="groups looked at; of more, those without a limit are left out first"),
    ] = 1000
    most_threads: Annotated[
        int, Meta(ge=0, le=1_000_000, description="threads that are asked how long they waited, at one look")
    ] = 5000


class LedgerSettings(msgspec.Struct, frozen=True):
    """The process that keeps the history of GPU workloads."""

    database: Annotated[
        str, Meta(min_length=1, description="URL of the database; `auto` is an SQLite file in the state folder")
    ] = "auto"
    pool_size: Annotated[int, Meta(ge=1, le=1000, description="connections to the database at most")] = 4
    connect_timeout: Annotated[Duration, Meta(description="time for reaching the database")] = Duration(10_000_000)
    statement_timeout: Annotated[
        Duration, Meta(description="time for a statement; on SQLite, for its turn to write")
    ] = Duration(60_000_000)
    tls: Annotated[
        Literal["off", "required", "verified"],
        Meta(description="whether the connection to the database is encrypted, and the server's certificate proved"),
    ] = "off"
    tls_authority: Annotated[
        str, Meta(min_length=1, description="file with the authorities that may sign it; `system` is the machine's")
    ] = "system"
    cluster: Annotated[
        str,
        Meta(min_length=1, description="name of the cluster in the ledger; `auto` is the uid of namespace kube-system"),
    ] = "auto"
    request_timeout: Annotated[
        Duration, Meta(description="time for an answer of the API server, which itself gives up after a minute")
    ] = Duration(65_000_000)
    watch_stall: Annotated[
        Duration,
        Meta(description="time without a word after which a watch counts as dead; bookmarks come every minute"),
    ] = Duration(70_000_000)
    batch: Annotated[
        int, Meta(ge=1, le=100_000, description="changes that one transaction takes in, as far as they have come")
    ] = 2000
    spool: Annotated[
        str, Meta(min_length=1, description="folder for batches while the database is away; `auto` is the state folder")
    ] = "auto"
    spool_mib: Annotated[int, Meta(ge=1, le=1_000_000, description="MiB that may wait there")] = 256
    retention: Annotated[
        Duration, Meta(description="how long versions are kept; any state since then is exact; `0s`: for ever")
    ] = Duration(0)
    election: Annotated[
        Literal["on", "off"], Meta(description="whether replicas elect a leader by a Lease; only the leader writes")
    ] = "on"
    lease_namespace: Annotated[str, Meta(min_length=1, description="namespace of the Lease")] = "kube-system"
    lease_name: Annotated[str, Meta(min_length=1, description="name of the Lease")] = "bayplan-ledger"
    lease_duration: Annotated[
        Duration, Meta(description="how long replicas wait for a renewal before one takes over")
    ] = Duration(15_000_000)
    lease_renew: Annotated[
        Duration, Meta(description="how long a leader goes on without a renewal; shorter than the duration")
    ] = Duration(10_000_000)
    lease_retry: Annotated[Duration, Meta(description="time between two attempts at the Lease")] = Duration(2_000_000)
    gpu_resources: Annotated[
        ResourcePatterns,
        Meta(description="further resources that are whole GPUs, as `rebellions.ai/ATOM,example.com/npu-*`; `none`"),
    ] = ResourcePatterns()
    user_label: Annotated[
        str, Meta(min_length=1, description="label that names a pod's user; `none` looks at no label")
    ] = "none"
    user_annotation: Annotated[
        str, Meta(min_length=1, description="annotation that names a pod's user; `none` looks at no annotation")
    ] = "none"
    user_creator: Annotated[
        Literal["on", "off"], Meta(description="whether the creator stands for the user where nothing else names one")
    ] = "off"
    finalizers: Annotated[
        Literal["on", "off"],
        Meta(description="whether GPU pods and root workloads stay until their last state is stored, a minute at most"),
    ] = "off"
    kubelet_service: Annotated[
        Literal["on", "off"], Meta(description="whether a Service with all kubelets is kept in kube-system, every 30 s")
    ] = "off"
    kubelet_ports: Annotated[
        PortNumbers, Meta(description="ports of that Service; old kubelets serve 10255 and 4194 as well")
    ] = PortNumbers(10250)
    prometheus: Annotated[
        str, Meta(min_length=1, description="URL of a Prometheus that measures how GPUs are used; `none` asks nobody")
    ] = "none"
    prometheus_bearer: Annotated[
        str, Meta(min_length=1, description="file with a bearer token for it; `none` sends none")
    ] = "none"
    prometheus_authority: Annotated[
        str, Meta(min_length=1, description="file with the authorities that may sign it; `system` is the machine's")
    ] = "system"
    prometheus_interval: Annotated[
        Duration, Meta(description="time that one measurement of a device tells of; longer than scrapes are apart")
    ] = Duration(300_000_000)
    prometheus_reach: Annotated[
        Duration, Meta(description="how far back measurements are fetched after an outage, and at the first start")
    ] = Duration(6 * 3600 * 1_000_000)
    use_query: Annotated[
        str,
        Meta(
            min_length=1, description="PromQL of utilisation; `auto` asks for what the exporters of NVIDIA and AMD have"
        ),
    ] = "auto"
    use_unit: Annotated[
        Literal["auto", "percent", "ratio"], Meta(description="unit of its values; `auto` goes by the metric's name")
    ] = "auto"
    use_memory_query: Annotated[
        str, Meta(min_length=1, description="PromQL of memory in use, in bytes; `auto` as above, `none` does not ask")
    ] = "auto"
    use_labels: Annotated[
        str, Meta(min_length=1, description="labels that say what is measured, as `pod=workload,device=card`; `auto`")
    ] = "auto"
    use_retention: Annotated[
        Duration,
        Meta(description="how long measurements are kept, unless `ledger.retention` is shorter; `0s`: for ever"),
    ] = Duration(30 * 24 * 3600 * 1_000_000)


class Settings(msgspec.Struct, frozen=True):
    """All of bayplan's settings."""

    log: LogSettings = LogSettings()
    health: HealthSettings = HealthSettings()
    shutdown: ShutdownSettings = ShutdownSettings()
    throttling: ThrottlingSettings = ThrottlingSettings()
    agent: AgentSettings = AgentSettings()
    ledger: LedgerSettings = LedgerSettings()


@runtime_checkable
class Readable(Protocol):
    """A type that reads itself from text and writes itself back: Duration, Levels."""

    schema: dict[str, Any]

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the text. Raises ValueError with what was expected and what was given."""
        ...


class Setting(msgspec.Struct, frozen=True):
    """One thing that can be set."""

    section: str
    name: str
    type: Any
    default: Any
    description: str
    meta: Meta

    @property
    def key(self) -> str:
        """Its name in files and messages."""
        return f"{self.section}.{self.name}"

    @property
    def variable(self) -> str:
        """Its name in the environment."""
        return f"BAYPLAN_{self.section}_{self.name}".upper()

    def read(self, text: str) -> Any:
        """The value that a text stands for. Raises ValueError with what was expected and what was given."""
        if isinstance(self.type, Readable):
            return self.type.parse(text)
        try:
            return msgspec.convert(text, Annotated[self.type, self.meta], strict=False)
        except msgspec.ValidationError:
            raise ValueError(f'expected {self._expected()}; got "{text}"') from None

    def _expected(self) -> str:
        if get_origin(self.type) is Literal:
            return "one of " + ", ".join(get_args(self.type))
        if self.type is str:
            return "a text that is not empty"
        return f"a whole number from {self.meta.ge} to {self.meta.le}"


def _settings() -> dict[str, Setting]:
    found = {}
    for section in msgspec.structs.fields(Settings):
        for field in msgspec.structs.fields(section.type):
            kind, meta = get_args(field.type)
            setting = Setting(section.name, field.name, kind, field.default, meta.description, meta)
            found[setting.key] = setting
    return found


SETTINGS = _settings()


def build(values: dict[str, Any]) -> Settings:
    """The settings with these values by key, and defaults for the rest."""
    sections: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        section, name = key.split(".")
        sections.setdefault(section, {})[name] = value
    types = {field.name: field.type for field in msgspec.structs.fields(Settings)}
    return Settings(**{name: types[name](**fields) for name, fields in sections.items()})


def json_schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a settings file."""
    sections = {}
    for section in msgspec.structs.fields(Settings):
        fields = {s.name: _property(s) for s in SETTINGS.values() if s.section == section.name}
        sections[section.name] = _closed_object(section.type.__doc__, fields)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "bayplan settings",
        **_closed_object(Settings.__doc__, sections),
    }


def _closed_object(description: str | None, properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "description": description, "properties": properties, "additionalProperties": False}


def _property(setting: Setting) -> dict[str, Any]:
    # msgspec's own schema cannot write the default of a type of ours, hence one property at a time.
    shape = (
        setting.type.schema
        if isinstance(setting.type, Readable)
        else msgspec.json.schema(Annotated[setting.type, setting.meta])
    )
    return {**shape, "description": setting.description, "default": plain(setting.default)}


def plain(value: Any) -> Any:
    """Settings, or one value, in JSON's types."""
    return msgspec.to_builtins(value, enc_hook=str)
