"""What a machine is made of, read from the kernel's own files under a root that may be any folder.

`discover` reads sockets, NUMA nodes, cores, threads and L3 groups; `disturbances` what the kernel runs on given CPUs;
`write_tree` is the fake: it writes a machine as the files that `discover` reads.
"""

from bayplan.node.discovery.files import DiscoveryError, NoNumaError
from bayplan.node.discovery.interrupts import Disturbance, disturbances
from bayplan.node.discovery.machine import discover
from bayplan.node.discovery.simulated import write_tree

__all__ = ["DiscoveryError", "Disturbance", "NoNumaError", "discover", "disturbances", "write_tree"]
