package train

import (
	"math"
	"slices"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// DeviceSetter says where [ReplicaDeviceSetter] puts the nodes of a replica.
type DeviceSetter struct {
	// counts the tasks of the job of PSDevice where PSTasks is zero
	Cluster cluster.Spec
	// number of parameter servers; with none, everything goes to the worker
	PSTasks      int
	PSDevice     string // "/job:ps" if empty
	WorkerDevice string // "/job:worker" if empty
	// operations that go to the parameter servers; nil for those of variables and tables
	PSOps []string
	// chooses the parameter server of such an operation; nil for one after the other
	Strategy func(*graph.Node) int
}

// statefulOps are the operations whose state belongs on parameter servers.
var statefulOps = []string{
	"Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2", "MutableHashTableOfTensors",
	"MutableHashTableOfTensorsV2", "MutableDenseHashTable", "MutableDenseHashTableV2", "VarHandleOp",
	"BoostedTreesEnsembleResourceHandleOp", "BoostedTreesQuantileStreamResourceHandleOp", "ResourceConditionalAccumulator",
	"DecisionTreeResource",
}

// ReplicaDeviceSetter returns a device function that puts variables on the parameter servers and
// everything else on the worker, for [op.Scope.WithDeviceFunc]. Parts of a device that an inner
// scope gave stand. Replicas that build the same graph put the same variable on the same server. A
// malformed device is given to the nodes as it is, for placement to report.
func ReplicaDeviceSetter(cfg DeviceSetter) op.DeviceFunc {
	if cfg.PSDevice == "" {
		cfg.PSDevice = "/job:ps"
	}
	if cfg.WorkerDevice == "" {
		cfg.WorkerDevice = "/job:worker"
	}
	if cfg.PSOps == nil {
		cfg.PSOps = statefulOps
	}
	if _, err := device.Parse(cfg.WorkerDevice); err != nil {
		return func(*graph.Node) string { return cfg.WorkerDevice }
	}
	ps, err := device.Parse(cfg.PSDevice)
	if err != nil {
		return func(*graph.Node) string { return cfg.PSDevice }
	}
	if cfg.PSTasks == 0 {
		cfg.PSTasks = len(cfg.Cluster[ps.Job])
	}
	if cfg.Strategy == nil {
		cfg.Strategy = RoundRobin(cfg.PSTasks)
	}
	return func(n *graph.Node) string {
		if cfg.PSTasks == 0 || !slices.Contains(cfg.PSOps, n.Op.Name) {
			return op.MergeDevice(n.Device, cfg.WorkerDevice)
		}
		target := ps
		if current, err := device.Parse(n.Device); err == nil && ps.Job != "" && (current.Job == "" || current.Job == ps.Job) {
			target.Task = cfg.Strategy(n)
		}
		return op.MergeDevice(n.Device, target.String())
	}
}

// RoundRobin returns a strategy that chooses one task after the other.
func RoundRobin(tasks int) func(*graph.Node) int {
	next := 0
	return func(*graph.Node) int {
		task := next
		next = (next + 1) % tasks
		return task
	}
}

// LeastLoaded returns a strategy that chooses the task with the least load so far, the first of
// several. load is what a node adds to it, [VariableBytes] for instance.
func LeastLoaded(tasks int, load func(*graph.Node) float64) func(*graph.Node) int {
	loads := make([]float64, tasks)
	return func(n *graph.Node) int {
		least := slices.Index(loads, slices.Min(loads))
		loads[least] += load(n)
		return least
	}
}

// VariableBytes returns the memory that the value of a variable takes, from the type and the shape
// that its node has; strings count 8 bytes each.
func VariableBytes(n *graph.Node) float64 {
	shape, full := n.Attrs.Shape("shape").Full()
	if !full {
		return math.Inf(1)
	}
	size := n.Attrs.Type("dtype").Size()
	if n.Attrs.Type("dtype") == tensor.String {
		size = 8
	}
	return float64(shape.NumElements()) * float64(size)
}
