"""The scheduler of a run: a named policy or a KubeSchedulerConfiguration.

Where a scenario's pods ask for shares of GPUs every policy counts them, so that policies are compared on the same
terms; with a configuration of one's own it is as that says.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from bayplan.model.errors import PermanentError
from bayplan.model.pods import Pod
from bayplan.scheduling.configuration import SchedulerConfiguration
from bayplan.scheduling.framework import Profile
from bayplan.scheduling.plugins.gpu_share import GpuShare
from bayplan.scheduling.policies import POLICIES, profile
from bayplan.simulate.expected import expected, typical
from bayplan.simulate.scenario import Scenario


class UnknownPolicyError(PermanentError):
    """There is no policy of that name."""

    code = "BP-X014"


def configuration(scenario: Scenario, policy: str, seed: int, there: Iterable[Pod] = ()) -> SchedulerConfiguration:
    """What the scheduler of a run goes by, on a cluster with these pods. Raises UnknownPolicyError."""
    if policy not in POLICIES:
        raise UnknownPolicyError(f'no policy "{policy}"', hint=f"there are {', '.join(POLICIES)}")
    sorts = expected(scenario, there)
    found = profile(policy, typical(sorts), seed)
    return SchedulerConfiguration((counting(found, shares=any(each.for_share for each in sorts)),))


def counting(profile: Profile, *, shares: bool) -> Profile:
    """The profile, which counts shares of GPUs where there are any."""
    if not shares or any(isinstance(each, GpuShare) for each in profile.filters):
        return profile
    return msgspec.structs.replace(profile, filters=(*profile.filters, GpuShare()))
