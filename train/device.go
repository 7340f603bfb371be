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

// DeviceSetter configures [ReplicaDeviceSetter].
type DeviceSetter struct {
	Cluster      cluster.Spec // its tasks in the job of PSDevice are counted if PSTasks is 0
	PSTasks      int          // parameter servers; without any, all nodes are placed on the worker
	PSDevice     string       // "/job:ps" if empty
	WorkerDevice string       // "/job:worker" if empty
	// operations for the parameter servers; nil for those of variables and tables
	PSOps []string
	// Strategy returns the task index of the parameter server for a node; nil for [RoundRobin].
	Strategy func(*graph.Node) int
}

// statefulOps are the operations whose state belongs on parameter servers.
var statefulOps = []string{
	"Variable", "VariableV2", "AutoReloadVariable", "MutableHashTable", "MutableHashTableV2", "MutableHashTableOfTensors",
	"MutableHashTableOfTensorsV2", "MutableDenseHashTable", "MutableDenseHashTableV2", "VarHandleOp",
	"BoostedTreesEnsembleResourceHandleOp", "BoostedTreesQuantileStreamResourceHandleOp", "ResourceConditionalAccumulator",
	"DecisionTreeResource",
}

// ReplicaDeviceSetter returns a device function for [op.Scope.WithDeviceFunc]. It places variables
// on the parameter servers and all other nodes on the worker. The parts of a device name that an
// inner scope has set take precedence. Replicas that build the same graph place a variable on the
// same server. A malformed device name is passed on to the nodes; placement reports it.
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

// RoundRobin returns a strategy that chooses the tasks in turn.
func RoundRobin(tasks int) func(*graph.Node) int {
	next := 0
	return func(*graph.Node) int {
		task := next
		next = (next + 1) % tasks
		return task
	}
}

// LeastLoaded returns a strategy that chooses the task with the least load so far, and the first of
// several with the same load. load returns the load of a node, for instance [VariableBytes].
func LeastLoaded(tasks int, load func(*graph.Node) float64) func(*graph.Node) int {
	loads := make([]float64, tasks)
	return func(n *graph.Node) int {
		least := slices.Index(loads, slices.Min(loads))
		loads[least] += load(n)
		return least
	}
}

// VariableBytes returns the size of a variable's value in bytes, from the type and the shape of its
// node. A string counts 8 bytes. It returns infinity if the shape is not fully known.
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
