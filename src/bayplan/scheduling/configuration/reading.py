"""A KubeSchedulerConfiguration read: the document's words become settings and profiles, or all its faults are told.

Source of truth: kube-scheduler 1.36 apis/config/v1/defaults.go and apis/config/validation/validation.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from bayplan.model.faults import Fault, Faults, invalid, shown
from bayplan.model.fitting import fit
from bayplan.scheduling.configuration.document import API_VERSION, KIND, Document, ProfileDocument
from bayplan.scheduling.configuration.faults import ConfigurationError
from bayplan.scheduling.configuration.profile import read_profile
from bayplan.scheduling.framework import Profile

DEFAULT_SCHEDULER = "default-scheduler"
_MAX_PERCENT = 100


class SchedulerConfiguration(msgspec.Struct, frozen=True):
    """What a file says, with upstream's defaults for what it does not say."""

    profiles: tuple[Profile, ...]
    parallelism: int = 16
    percentage_of_nodes_to_score: int = 0
    """For profiles that do not say; each profile holds what counts for it."""
    pod_initial_backoff_seconds: int = 1
    pod_max_backoff_seconds: int = 10

    def by_name(self) -> dict[str, Profile]:
        """The profiles by the scheduler name that pods ask for."""
        return {profile.scheduler_name: profile for profile in self.profiles}


def read_configuration(document: Any, source: str = "") -> SchedulerConfiguration:
    """Read a document, as YAML or JSON gives it; `source` is what errors call it. Raises ConfigurationError."""
    if not isinstance(document, Mapping):
        raise ConfigurationError([Fault("", f"expected a {KIND}, not {shown(document)}")], source)
    if document.get("kind") not in (None, KIND):  # of another kind nothing else would be right, either
        raise ConfigurationError([Fault("kind", f"expected {KIND}, not {shown(document['kind'])}")], source)
    faults = Faults()
    read, _ = fit(document, Document, "", faults)
    _check(read, faults)
    written = read.profiles or (ProfileDocument(),)
    if len(written) == 1 and written[0].scheduler_name is None:
        written = (msgspec.structs.replace(written[0], scheduler_name=DEFAULT_SCHEDULER),)
    _check_together(written, faults)
    plans = [
        read_profile(profile, read.percentage_of_nodes_to_score, f"profiles[{i}]", faults)
        for i, profile in enumerate(written)
    ]
    if faults.found:
        raise ConfigurationError(faults.found.values(), source)
    return SchedulerConfiguration(
        tuple(plan.profile() for plan in plans),
        read.parallelism,
        read.percentage_of_nodes_to_score,
        read.pod_initial_backoff_seconds,
        read.pod_max_backoff_seconds,
    )


def _check(read: Document, faults: Faults) -> None:
    if read.api_version != API_VERSION:
        faults.add("apiVersion", f"expected {API_VERSION}, not {shown(read.api_version)}")
    if read.parallelism <= 0:
        faults.add("parallelism", invalid(read.parallelism, "should be an integer value greater than zero"))
    _check_percentage(read.percentage_of_nodes_to_score, "percentageOfNodesToScore", faults)
    if read.pod_initial_backoff_seconds <= 0:
        faults.add("podInitialBackoffSeconds", invalid(read.pod_initial_backoff_seconds, "must be greater than 0"))
    if read.pod_max_backoff_seconds < read.pod_initial_backoff_seconds:
        words = "must be greater than or equal to PodInitialBackoffSeconds"
        faults.add("podMaxBackoffSeconds", invalid(read.pod_max_backoff_seconds, words))
    if read.extenders:
        faults.add("extenders", "not supported: an extender is another program's answer, which cannot be foreseen here")


def _check_percentage(percentage: int | None, path: str, faults: Faults) -> None:
    if percentage is not None and not 0 <= percentage <= _MAX_PERCENT:
        faults.add(path, invalid(percentage, "not in valid range [0-100]"))


def _check_together(profiles: tuple[ProfileDocument, ...], faults: Faults) -> None:
    """What profiles owe one another: names of their own, and one order of the queue that they share."""
    seen: dict[str, int] = {}
    for i, profile in enumerate(profiles):
        path = f"profiles[{i}]"
        _check_percentage(profile.percentage_of_nodes_to_score, f"{path}.percentageOfNodesToScore", faults)
        name = profile.scheduler_name
        if not name:
            faults.add(f"{path}.schedulerName", "Required value")
        elif seen.setdefault(name, i) != i:
            faults.add(f"{path}.schedulerName", f"Duplicate value: {shown(name)}: profiles[{seen[name]}] has it")
        if profile.plugins.queue_sort != profiles[0].plugins.queue_sort:
            faults.add(f"{path}.plugins.queueSort", "must be the same for all profiles")
