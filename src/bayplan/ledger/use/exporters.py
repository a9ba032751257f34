"""What exporters of GPU metrics call things, and in which units they speak.

    dcgm-exporter (NVIDIA)            percent, or a share for the profiling metrics that MIG devices have; MiB
    device-metrics-exporter (AMD)     percent; MiB; with or without its prefix amd_
    anything else                     a query of one's own: its unit by setting, memory in bytes

Prometheus renames what clashes with the labels of its target: what the exporter called `pod` is `exported_pod` then,
and `pod` is the exporter's own. So the renamed ones come first.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

import msgspec

from bayplan.model.errors import PermanentError

Unit = Literal["auto", "percent", "ratio"]

MIB = 1 << 20
WHOLE: dict[str, float] = {
    "DCGM_FI_DEV_GPU_UTIL": 100,
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 1,
    "gpu_gfx_activity": 100,
    "amd_gpu_gfx_activity": 100,
}
"""Metrics of utilisation, the preferred ones of a device first, and the value that means all of it."""
BYTES: dict[str, int] = {"DCGM_FI_DEV_FB_USED": MIB, "gpu_used_vram": MIB, "amd_gpu_used_vram": MIB}
"""Metrics of memory in use, and the bytes of one unit."""
UNITS: dict[str, float] = {"percent": 100, "ratio": 1}


class UseSettingsError(PermanentError):
    """The settings for measurements cannot be used as they are."""

    code = "BP-D052"


class Labels(msgspec.Struct, frozen=True):
    """Which labels say what; of several, the first that is there and not empty."""

    pod: tuple[str, ...] = ("exported_pod", "pod_name", "pod")
    namespace: tuple[str, ...] = ("exported_namespace", "pod_namespace", "namespace")
    device: tuple[str, ...] = ("UUID", "gpu_uuid", "uuid", "serial_number", "gpu", "gpu_id", "device")
    uid: tuple[str, ...] = ("exported_pod_uid", "pod_uid")
    part: tuple[str, ...] = ("GPU_I_ID", "gpu_partition_id")
    """Of a device: a MIG instance has its parent's UUID."""

    @classmethod
    def parse(cls, text: str) -> Labels:
        """`auto`, or as `pod=workload,device=card`: others stay as they are. Raises UseSettingsError."""
        if text == "auto":
            return cls()
        pairs = [re.fullmatch(r"(pod|namespace|device|uid|part)=(\w+)", word.strip()) for word in text.split(",")]
        if None in pairs or len({pair[1] for pair in pairs if pair}) < len(pairs):
            raise UseSettingsError(
                f'ledger.use_labels: expected `auto`, or as `pod=LABEL,namespace=LABEL,device=LABEL`; got "{text}"',
                hint="what can be named is pod, namespace, device, uid (of the pod) and part (of a device), each once",
            )
        return cls(**{pair[1]: (pair[2],) for pair in pairs if pair})


def usual_queries(interval: int) -> tuple[str, str]:
    """What the exporters above have: the mean share of each device over an interval of seconds, and the most bytes.

    Over an interval, so that one row tells of all of its scrapes, and of none before.
    """
    shares = [f"avg_over_time({name}[{interval}s]) / {unit:g}" for name, unit in WHOLE.items()]
    sizes = [f"max_over_time({name}[{interval}s]) * {unit}" for name, unit in BYTES.items()]
    return " or ".join(shares), " or ".join(sizes)


def first(metric: Mapping[str, str], labels: tuple[str, ...]) -> str:
    """The first label that says anything; else nothing."""
    return next((value for label in labels if (value := metric.get(label))), "")


def whole(name: str, unit: Unit) -> float:
    """The value of a series that means all of a device. Raises UseSettingsError where nobody says."""
    if unit != "auto":
        return UNITS[unit]
    if name not in WHOLE:
        raise UseSettingsError(
            f"ledger.use_query gives {name or 'values without the name of a metric'}: nothing says their unit",
            hint="set ledger.use_unit to `percent` (0 to 100) or `ratio` (0 to 1)",
        )
    return WHOLE[name]
