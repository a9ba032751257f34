"""Profiles and settings from a KubeSchedulerConfiguration, the file that kube-scheduler itself is configured with.

faults             every mistake with its path, told at once
document, shape    the words of the file, and fitting a document to them
points             plugin sets laid over the defaults
plugin_arguments   arguments, defaults and limits
profile, reading   all of it put together
"""

from bayplan.scheduling.configuration.faults import ConfigurationError, Fault
from bayplan.scheduling.configuration.reading import SchedulerConfiguration, read_configuration

__all__ = ["ConfigurationError", "Fault", "SchedulerConfiguration", "read_configuration"]
