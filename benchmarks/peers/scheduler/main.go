// The peer of the scheduling benchmark: upstream's own scheduler, default profile, in this process.
//
// It reads a load (see benchmarks/scheduling_load.py), decides every pod with the scheduler's SchedulePod on a fresh
// snapshot, adds the placed pod to the scheduler's cache, and prints one line of JSON. There is no API server, queue,
// preemption, binding or logging: their time is not counted. Pods carry no signature: upstream signs none under the
// default profile (its default spreading forbids it), so its OpportunisticBatching takes no part there either.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

type load struct {
	Nodes  []*v1.Node `json:"nodes"`
	Warmup int        `json:"warmup"`
	Steps  []step     `json:"steps"`
}

type step struct {
	Create *v1.Pod `json:"create"`
	Delete string  `json:"delete"`
}

type result struct {
	Decisions     int               `json:"decisions"`
	Unschedulable int               `json:"unschedulable"`
	Seconds       float64           `json:"seconds"`       // inside SchedulePod
	CacheSeconds  float64           `json:"cache_seconds"` // snapshots, and pods added and removed
	CPUSeconds    float64           `json:"cpu_seconds"`   // of the process, over all measured steps
	P50           float64           `json:"p50_ms"`
	P99           float64           `json:"p99_ms"`
	Go            string            `json:"go"`
	MaxProcs      int               `json:"gomaxprocs"`
	NodeOf        map[string]string `json:"node_of,omitempty"` // of every pod that was decided; "" if it fitted nowhere
}

// bench is a scheduler and what it has done since the last reset.
type bench struct {
	ctx       context.Context
	logger    klog.Logger
	sched     *scheduler.Scheduler
	framework framework.Framework
	snapshot  *cache.Snapshot
	placed    map[string]*v1.Pod
	nodeOf    map[string]string

	unschedulable int
	decisions     []time.Duration
	upkeep        time.Duration
}

func newBench(nodes []*v1.Node, percentage, parallelism int32) (*bench, error) {
	logger := logr.Discard()
	klog.SetLogger(logger)
	ctx := klog.NewContext(context.Background(), logger)
	// The informers are never started: the client is there for the constructor, and nobody calls it.
	client, err := kubernetes.NewForConfig(&rest.Config{})
	if err != nil {
		return nil, err
	}
	silent := func(string) events.EventRecorderLogger { return &events.FakeRecorder{} }
	sched, err := scheduler.New(ctx, client, informers.NewSharedInformerFactory(client, 0), nil, silent,
		scheduler.WithPercentageOfNodesToScore(&percentage), scheduler.WithParallelism(parallelism))
	if err != nil {
		return nil, err
	}
	profile := sched.Profiles[v1.DefaultSchedulerName]
	snapshot, ok := profile.SnapshotSharedLister().(*cache.Snapshot)
	if !ok {
		return nil, errors.New("the profile's snapshot is not the scheduler's")
	}
	for _, node := range nodes {
		sched.Cache.AddNode(logger, node)
	}
	return &bench{
		ctx: ctx, logger: logger, sched: sched, framework: profile, snapshot: snapshot,
		placed: map[string]*v1.Pod{}, nodeOf: map[string]string{},
	}, nil
}

func (b *bench) run(steps []step) error {
	for _, step := range steps {
		var err error
		if step.Create != nil {
			err = b.create(step.Create)
		} else {
			err = b.delete(step.Delete)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) create(pod *v1.Pod) error {
	info, err := framework.NewPodInfo(pod) // the queue's work
	if err != nil {
		return err
	}
	queued := &framework.QueuedPodInfo{PodInfo: info}
	begin := time.Now()
	if err := b.sched.Cache.UpdateSnapshot(b.logger, b.snapshot); err != nil {
		return err
	}
	ready := time.Now()
	decision, err := b.sched.SchedulePod(b.ctx, b.framework, framework.NewCycleState(), queued)
	end := time.Now()
	b.upkeep += ready.Sub(begin)
	b.decisions = append(b.decisions, end.Sub(ready))
	name := pod.Namespace + "/" + pod.Name
	b.nodeOf[name] = decision.SuggestedHost
	var unfit *framework.FitError
	if errors.As(err, &unfit) {
		b.unschedulable++
		return nil
	} else if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	bound := pod.DeepCopy()
	bound.Spec.NodeName = decision.SuggestedHost
	b.placed[name] = bound
	begin = time.Now()
	err = b.sched.Cache.AddPod(b.logger, bound)
	b.upkeep += time.Since(begin)
	return err
}

// delete removes a placed pod; one that fitted nowhere is gone already.
func (b *bench) delete(name string) error {
	pod, ok := b.placed[name]
	if !ok {
		return nil
	}
	delete(b.placed, name)
	begin := time.Now()
	err := b.sched.Cache.RemovePod(b.logger, pod)
	b.upkeep += time.Since(begin)
	return err
}

func (b *bench) reset() {
	b.unschedulable, b.decisions, b.upkeep = 0, nil, 0
}

func (b *bench) result(cpu time.Duration) result {
	slices.Sort(b.decisions)
	count := len(b.decisions)
	var total time.Duration
	for _, each := range b.decisions {
		total += each
	}
	milliseconds := func(share float64) float64 {
		if count == 0 {
			return 0
		}
		return b.decisions[int(share*float64(count-1))].Seconds() * 1e3
	}
	return result{
		Decisions: count, Unschedulable: b.unschedulable,
		Seconds: total.Seconds(), CacheSeconds: b.upkeep.Seconds(), CPUSeconds: cpu.Seconds(),
		P50: milliseconds(.5), P99: milliseconds(.99),
		Go: runtime.Version(), MaxProcs: runtime.GOMAXPROCS(0),
	}
}

func cpuTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		panic(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func measure(path string, percentage, parallelism int32, limit int, placements bool) (result, error) {
	var given load
	content, err := os.ReadFile(path)
	if err != nil {
		return result{}, err
	}
	if err := json.Unmarshal(content, &given); err != nil {
		return result{}, fmt.Errorf("%s: %w", path, err)
	}
	warmup, measured := given.Steps[:given.Warmup], given.Steps[given.Warmup:]
	if limit > 0 {
		measured = measured[:min(limit, len(measured))]
	}
	bench, err := newBench(given.Nodes, percentage, parallelism)
	if err != nil {
		return result{}, err
	}
	if err := bench.run(warmup); err != nil {
		return result{}, err
	}
	bench.reset()
	runtime.GC()
	begin := cpuTime()
	if err := bench.run(measured); err != nil {
		return result{}, err
	}
	answer := bench.result(cpuTime() - begin)
	if placements {
		answer.NodeOf = bench.nodeOf
	}
	return answer, nil
}

func main() {
	path := flag.String("load", "", "the file of the load")
	percentage := flag.Int("percentage", 0, "percentageOfNodesToScore; 0 is adaptive")
	parallelism := flag.Int("parallelism", 16, "goroutines; with 1 the placements are always the same")
	limit := flag.Int("limit", 0, "measured steps at most; 0 is all")
	placements := flag.Bool("placements", false, "also print the node of every pod")
	flag.Parse()
	answer, err := measure(*path, int32(*percentage), int32(*parallelism), *limit, *placements)
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(answer)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
