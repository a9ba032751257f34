package main

import (
	_ "unsafe" // for go:linkname

	"github.com/go-logr/logr"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/utils/cpuset"
)

// Upstream does not export its two selections: the linker is told where they are. A file of assembly beside this one,
// empty, lets the compiler accept functions without a body.

//go:linkname takePacked k8s.io/kubernetes/pkg/kubelet/cm/cpumanager.takeByTopologyNUMAPacked
func takePacked(logger logr.Logger, topo *topology.CPUTopology, available cpuset.CPUSet, count int,
	strategy cpumanager.CPUSortingStrategy, preferCache bool) (cpuset.CPUSet, error)

//go:linkname takeDistributed k8s.io/kubernetes/pkg/kubelet/cm/cpumanager.takeByTopologyNUMADistributed
func takeDistributed(logger logr.Logger, topo *topology.CPUTopology, available cpuset.CPUSet, count int,
	group int, strategy cpumanager.CPUSortingStrategy) (cpuset.CPUSet, error)
