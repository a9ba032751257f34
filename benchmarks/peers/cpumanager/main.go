// The peer of the CPU benchmark: the kubelet's own selection of CPUs and its hints, in this process.
//
// It reads questions, one line of JSON each (see benchmarks/cpu_peer.py), asks each `runs` times and answers with a line:
// what upstream chose, and the nanoseconds of CPU that the process spent on each run, its garbage collector's included.
// Inputs are built before the clock starts; runs are on one core (GOMAXPROCS is set by whoever starts it), and logging
// is off.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"runtime"
	"slices"
	"strconv"

	"github.com/go-logr/logr"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/state"
	"k8s.io/kubernetes/pkg/kubelet/cm/cpumanager/topology"
	"k8s.io/kubernetes/pkg/kubelet/cm/topologymanager"
	"k8s.io/utils/cpuset"
)

type question struct {
	CPUs        [][5]int `json:"cpus"` // cpu, core, socket, NUMA node, L3 group
	Available   string   `json:"available"`
	Count       int      `json:"count"`
	Function    string   `json:"function"` // packed, distributed or hints
	PreferCache bool     `json:"prefer_cache"`
	Group       int      `json:"group"`
	Runs        int      `json:"runs"`
}

type answer struct {
	Chosen string  `json:"chosen"`          // packed and distributed
	Hints  []hint  `json:"hints,omitempty"` // hints
	Nanos  []int64 `json:"nanos"`
	Go     string  `json:"go"`
}

type hint struct {
	Nodes     []int `json:"nodes"`
	Preferred bool  `json:"preferred"`
}

func topologyOf(cpus [][5]int) *topology.CPUTopology {
	details := topology.CPUDetails{}
	for _, cpu := range cpus {
		details[cpu[0]] = topology.CPUInfo{CoreID: cpu[1], SocketID: cpu[2], NUMANodeID: cpu[3], UncoreCacheID: cpu[4]}
	}
	return &topology.CPUTopology{
		NumCPUs: len(cpus), NumCores: details.Cores().Size(), NumUncoreCache: details.UncoreCaches().Size(),
		NumSockets: details.Sockets().Size(), NumNUMANodes: details.NUMANodes().Size(), CPUDetails: details,
	}
}

// spent is the CPU time of this process: other processes cannot add to it.
func spent() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &now); err != nil {
		log.Fatal(err)
	}
	return now.Nano()
}

// timed asks so many times and keeps the time of each.
func timed[T any](runs int, ask func() (T, error)) (T, []int64, error) {
	var last T
	nanos := make([]int64, 0, runs)
	for range runs {
		begin := spent()
		found, err := ask()
		nanos = append(nanos, spent()-begin)
		if err != nil {
			return last, nil, err
		}
		last = found
	}
	return last, nanos, nil
}

func selected(asked question) (answer, error) {
	logger, topo := logr.Discard(), topologyOf(asked.CPUs)
	available, err := cpuset.Parse(asked.Available)
	if err != nil {
		return answer{}, err
	}
	found, nanos, err := timed(asked.Runs, func() (cpuset.CPUSet, error) {
		if asked.Function == "distributed" {
			return takeDistributed(logger, topo, available, asked.Count, asked.Group, cpumanager.CPUSortingStrategyPacked)
		}
		return takePacked(logger, topo, available, asked.Count, cpumanager.CPUSortingStrategyPacked, asked.PreferCache)
	})
	return answer{Chosen: found.String(), Nanos: nanos}, err
}

// hinted asks the static policy for the hints of a new pod, all its CPUs but those available being reserved.
func hinted(asked question) (answer, error) {
	logger, topo := logr.Discard(), topologyOf(asked.CPUs)
	available, err := cpuset.Parse(asked.Available)
	if err != nil {
		return answer{}, err
	}
	reserved := topo.CPUDetails.CPUs().Difference(available)
	policy, err := cpumanager.NewStaticPolicy(logger, topo, reserved.Size(), reserved, topologymanager.NewFakeManager(), nil)
	if err != nil {
		return answer{}, err
	}
	remembered := state.NewMemoryState(logger)
	remembered.SetDefaultCPUSet(topo.CPUDetails.CPUs())
	pod := guaranteed(asked.Count)
	found, nanos, err := timed(asked.Runs, func() ([]topologymanager.TopologyHint, error) {
		return policy.GetTopologyHints(logger, remembered, pod, &pod.Spec.Containers[0])["cpu"], nil
	})
	given := answer{Nanos: nanos}
	for _, each := range found {
		given.Hints = append(given.Hints, hint{Nodes: each.NUMANodeAffinity.GetBits(), Preferred: each.Preferred})
	}
	return given, err
}

func guaranteed(cpus int) *v1.Pod {
	asked := v1.ResourceList{
		v1.ResourceCPU: resource.MustParse(strconv.Itoa(cpus)), v1.ResourceMemory: resource.MustParse("1Gi"),
	}
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{
		{Name: "app", Resources: v1.ResourceRequirements{Requests: asked, Limits: asked}},
	}}}
	pod.UID = "benchmark"
	return pod
}

func answered(line []byte) (answer, error) {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{}, err
	}
	switch {
	case asked.Function == "hints":
		return hinted(asked)
	case slices.Contains([]string{"packed", "distributed"}, asked.Function):
		return selected(asked)
	}
	return answer{}, fmt.Errorf("no function %q", asked.Function)
}

func main() {
	klog.SetLogger(logr.Discard())
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	written := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		given, err := answered(lines.Bytes())
		if err != nil {
			log.Fatal(err)
		}
		given.Go = runtime.Version()
		if err := written.Encode(given); err != nil {
			log.Fatal(err)
		}
	}
	if err := lines.Err(); err != nil {
		log.Fatal(err)
	}
}
