"""A node's settings from what the kubelet itself is configured with: its KubeletConfiguration and its flags.

names      the kubelet's fields and flags that have no part in this
document   the words of the file
flags      the words of the command line, put in the file's
amounts    reservations and thresholds read from their texts
checks     what the kubelet refuses, in its own words
reading    all of it put together
"""

from bayplan.node.configuration.amounts import Threshold
from bayplan.node.configuration.errors import NodeConfigurationError
from bayplan.node.configuration.reading import NodeConfiguration, file_named, read_configuration

__all__ = ["NodeConfiguration", "NodeConfigurationError", "Threshold", "file_named", "read_configuration"]
