"""Whether this process may write control groups: asked before anything begins, for a clear answer."""

from __future__ import annotations

from bayplan.node.burst.errors import BurstRightsError
from bayplan.node.cgroup import detect


def check_rights(cgroup_root: str) -> None:
    """Raise BurstRightsError where they cannot be written; NoTreeError where there are none."""
    if not detect.survey(cgroup_root).writable:
        raise BurstRightsError(
            f"control groups below {cgroup_root} are not writable: nothing is written",
            hint="run as root; without --apply, --try or --mode enforce it shows what would be done",
        )
