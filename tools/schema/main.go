// Command schema prints the table from which bayplan decodes Kubernetes objects: every type reachable from the kinds
// below, its fields in order, and what Go's struct tags and the OpenAPI document say of each.
//
// usage: go run . path/to/api/openapi-spec/swagger.json > kubernetes.json
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1 "k8s.io/api/resource/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
)

var kinds = []any{
	corev1.Pod{}, corev1.Node{}, corev1.Namespace{}, corev1.Service{}, corev1.ConfigMap{}, corev1.Secret{},
	corev1.ServiceAccount{}, corev1.PersistentVolume{}, corev1.PersistentVolumeClaim{}, corev1.ResourceQuota{},
	corev1.LimitRange{}, corev1.Event{}, corev1.ReplicationController{}, corev1.Binding{}, corev1.PodTemplate{},
	appsv1.Deployment{}, appsv1.ReplicaSet{}, appsv1.StatefulSet{}, appsv1.DaemonSet{}, appsv1.ControllerRevision{},
	batchv1.Job{}, batchv1.CronJob{}, policyv1.PodDisruptionBudget{}, policyv1.Eviction{},
	autoscalingv1.Scale{}, autoscalingv2.HorizontalPodAutoscaler{}, schedulingv1.PriorityClass{},
	coordinationv1.Lease{}, discoveryv1.EndpointSlice{}, storagev1.StorageClass{}, nodev1.RuntimeClass{},
	resourcev1.ResourceClaim{}, resourcev1.ResourceClaimTemplate{}, resourcev1.ResourceSlice{}, resourcev1.DeviceClass{},
}

// special types decode by a parser of their own.
var special = map[string]string{
	"k8s.io/apimachinery/pkg/api/resource.Quantity":   "Quantity",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":       "Time",
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":  "MicroTime",
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":   "Duration",
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":   "Any",
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString": "IntOrString",
	"k8s.io/apimachinery/pkg/runtime.RawExtension":    "Any",
}

type field struct {
	Name     string   `json:"name"`
	Type     string   `json:"type"`
	Keep     bool     `json:"keep,omitempty"`     // no omitempty: written even when zero
	Embedded string   `json:"embedded,omitempty"` // the Go struct the field was inlined from
	Patch    string   `json:"patch,omitempty"`    // patchStrategy
	MergeKey string   `json:"mergeKey,omitempty"` // patchMergeKey
	List     string   `json:"list,omitempty"`     // x-kubernetes-list-type
	ListKeys []string `json:"listKeys,omitempty"` // x-kubernetes-list-map-keys
	Map      string   `json:"map,omitempty"`      // x-kubernetes-map-type
	Default  any      `json:"default,omitempty"`
	Proto    []int    `json:"proto,omitempty"` // protobuf field numbers, through the structs it was inlined from
}

type table struct {
	Version string
	Kinds   map[string]string
	Atomic  []string // structs that server-side apply owns as one piece
	Types   map[string][]field
}

type property struct {
	Ref   string `json:"$ref"`
	AllOf []struct {
		Ref string `json:"$ref"`
	} `json:"allOf"`
	ListType string   `json:"x-kubernetes-list-type"`
	ListKeys []string `json:"x-kubernetes-list-map-keys"`
	MapType  string   `json:"x-kubernetes-map-type"`
	Default  any      `json:"default"`
}
type definition struct {
	MapType    string              `json:"x-kubernetes-map-type"`
	Properties map[string]property `json:"properties"`
}

var out = table{Version: "v1.36.4", Kinds: map[string]string{}, Types: map[string][]field{}}
var definitions map[string]definition

func shortName(t reflect.Type) string {
	parts := strings.Split(t.PkgPath(), "/")
	return parts[len(parts)-2] + "." + parts[len(parts)-1] + "." + t.Name()
}

func openAPIName(t reflect.Type) string {
	p := strings.Replace(t.PkgPath(), "k8s.io/", "io.k8s.", 1)
	return strings.ReplaceAll(p, "/", ".") + "." + t.Name()
}

func describe(t reflect.Type) string {
	if name, ok := special[t.PkgPath()+"."+t.Name()]; ok {
		return name
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + describe(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bytes"
		}
		return "[]" + describe(t.Elem())
	case reflect.Map:
		return "map " + describe(t.Elem())
	case reflect.Struct:
		walk(t)
		return shortName(t)
	default:
		return t.Kind().String()
	}
}

func walk(t reflect.Type) {
	name := shortName(t)
	if _, seen := out.Types[name]; seen {
		return
	}
	out.Types[name] = nil
	def := definitions[openAPIName(t)]
	if def.MapType == "atomic" {
		out.Atomic = append(out.Atomic, name)
	}
	out.Types[name] = fields(t, def, "", nil)
}

func fields(t reflect.Type, def definition, embedded string, above []int) []field {
	list := []field{}
	for i := 0; i < t.NumField(); i++ {
		f := t.Field(i)
		tag := strings.Split(f.Tag.Get("json"), ",")
		if f.Anonymous && tag[0] == "" {
			inner := embedded
			if f.Type.Name() != "TypeMeta" {
				inner = f.Type.Name()
			}
			below := append(append([]int{}, above...), number(f.Tag)...)
			inlined := fields(f.Type, merge(def, definitions[openAPIName(f.Type)]), inner, below)
			for n := range inlined {
				if number(f.Tag) == nil {
					inlined[n].Proto = nil // TypeMeta: protobuf has it outside of the object
				}
			}
			list = append(list, inlined...)
			continue
		}
		if tag[0] == "-" || tag[0] == "" {
			continue
		}
		keep := true
		for _, option := range tag[1:] {
			// omitzero on a pointer or map is what omitempty is; on a struct it drops the zero struct.
			if option == "omitempty" && f.Type.Kind() != reflect.Struct || option == "omitzero" {
				keep = false
			}
		}
		p := def.Properties[tag[0]]
		list = append(list, field{
			Name: tag[0], Type: describe(f.Type), Keep: keep, Embedded: embedded,
			Patch: f.Tag.Get("patchStrategy"), MergeKey: f.Tag.Get("patchMergeKey"),
			List: p.ListType, ListKeys: p.ListKeys, Map: p.MapType, Default: p.Default,
			Proto: append(append([]int{}, above...), number(f.Tag)...),
		})
	}
	return list
}

// number reads the field number of a protobuf tag: "bytes,3,opt,name=status".
func number(tag reflect.StructTag) []int {
	parts := strings.Split(tag.Get("protobuf"), ",")
	if len(parts) < 2 {
		return nil
	}
	n, err := strconv.Atoi(parts[1])
	if err != nil {
		log.Fatal(err)
	}
	return []int{n}
}

func merge(a, b definition) definition {
	all := definition{Properties: map[string]property{}}
	for _, d := range []definition{b, a} {
		for k, v := range d.Properties {
			all.Properties[k] = v
		}
	}
	return all
}

func main() {
	raw, err := os.ReadFile(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	var document struct{ Definitions map[string]definition }
	if err := json.Unmarshal(raw, &document); err != nil {
		log.Fatal(err)
	}
	definitions = document.Definitions
	for _, kind := range kinds {
		t := reflect.TypeOf(kind)
		walk(t)
		out.Kinds[t.Name()] = shortName(t)
	}
	write()
}

// write prints a type a line, sorted, so that a change of version reads as a diff.
func write() {
	names := make([]string, 0, len(out.Types))
	for name := range out.Types {
		names = append(names, name)
	}
	sort.Strings(names)
	sort.Strings(out.Atomic)
	fmt.Printf("{\"version\": %s,\n\"kinds\": %s,\n\"atomic\": %s,\n\"types\": {\n", text(out.Version), text(out.Kinds), text(out.Atomic))
	for i, name := range names {
		comma := ","
		if i == len(names)-1 {
			comma = ""
		}
		fmt.Printf("%s: %s%s\n", text(name), text(out.Types[name]), comma)
	}
	fmt.Println("}}")
}

func text(value any) string {
	raw, err := json.Marshal(value)
	if err != nil {
		log.Fatal(err)
	}
	return string(raw)
}
