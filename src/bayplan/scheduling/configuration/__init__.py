"""Profiles and settings from a KubeSchedulerConfiguration, the file that kube-scheduler itself is configured with.

faults             the error that tells every mistake at once
document           the words of the file
points             plugin sets laid over the defaults
plugin_arguments   arguments, defaults and limits
profile, reading   all of it put together
"""

from bayplan.model.faults import Fault
from bayplan.scheduling.configuration.faults import ConfigurationError
from bayplan.scheduling.configuration.reading import SchedulerConfiguration, read_configuration

__all__ = ["ConfigurationError", "Fault", "SchedulerConfiguration", "read_configuration"]
