"""VMs on a scheduler: `VM`, `PodManager`, `ExporterState`, with what surrounds them."""

from bayplan.simulate.vms.agreement import Agreement, MoveResult
from bayplan.simulate.vms.choosing import BackendError
from bayplan.simulate.vms.exporter import Exporter
from bayplan.simulate.vms.exporter_state import ExporterState, NodeUse, NotInScenarioError
from bayplan.simulate.vms.grounds import ClusterAway
from bayplan.simulate.vms.manager import PodManager
from bayplan.simulate.vms.migrating import Migration
from bayplan.simulate.vms.precopy import Network, Transfer, precopy, timeline
from bayplan.simulate.vms.reasons import Why
from bayplan.simulate.vms.scenario_file import VMFileError, parse_vms, read_vms
from bayplan.simulate.vms.vm import VM, Node, NodeShape, VMError

__all__ = [
    "VM",
    "Agreement",
    "BackendError",
    "ClusterAway",
    "Exporter",
    "ExporterState",
    "Migration",
    "MoveResult",
    "Network",
    "Node",
    "NodeShape",
    "NodeUse",
    "NotInScenarioError",
    "PodManager",
    "Transfer",
    "VMError",
    "VMFileError",
    "Why",
    "parse_vms",
    "precopy",
    "read_vms",
    "timeline",
]
