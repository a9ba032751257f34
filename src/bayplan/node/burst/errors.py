"""What can be wrong with a burst before anything is written."""

from __future__ import annotations

from bayplan.model.errors import PermanentError


class BurstConfigError(PermanentError):
    """Parameters of a burst outside the range in which it is safe."""

    code = "BP-N050"


class BurstRightsError(PermanentError):
    """Control groups that this process may not write."""

    code = "BP-N054"
