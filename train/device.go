package train

import (
	"fmt"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
)

// DeviceSetter says where [ReplicaDeviceSetter] puts the nodes of a replica.
type DeviceSetter struct {
	PSTasks      int    // number of parameter servers; with none, everything goes to the worker
	PSDevice     string // "/job:ps" if empty
	WorkerDevice string // "/job:worker" if empty
}

// onPS are the operations whose state belongs on parameter servers.
var onPS = map[string]bool{
	"Variable": true, "VariableV2": true, "AutoReloadVariable": true, "VarHandleOp": true,
	"MutableHashTable": true, "MutableHashTableV2": true, "MutableHashTableOfTensors": true,
	"MutableHashTableOfTensorsV2": true, "MutableDenseHashTable": true, "MutableDenseHashTableV2": true,
	"ResourceConditionalAccumulator": true, "DecisionTreeResource": true,
	"BoostedTreesEnsembleResourceHandleOp": true, "BoostedTreesQuantileStreamResourceHandleOp": true,
}

// ReplicaDeviceSetter returns a device function that puts variables on the parameter servers, one after the other, and
// everything else on the worker. Parts of a device that an inner scope gave stand. Replicas that build the same graph put
// the same variable on the same server.
func ReplicaDeviceSetter(cfg DeviceSetter) op.DeviceFunc {
	if cfg.PSDevice == "" {
		cfg.PSDevice = "/job:ps"
	}
	if cfg.WorkerDevice == "" {
		cfg.WorkerDevice = "/job:worker"
	}
	next := 0
	return func(n *graph.Node) string {
		target := cfg.WorkerDevice
		if cfg.PSTasks > 0 && onPS[n.Op.Name] {
			current, err := device.Parse(n.Device)
			ps, psErr := device.Parse(cfg.PSDevice)
			if err == nil && psErr == nil && (current.Job == "" || current.Job == ps.Job) {
				target = fmt.Sprintf("%s/task:%d", cfg.PSDevice, next)
				next = (next + 1) % cfg.PSTasks
			}
		}
		return op.MergeDevice(n.Device, target)
	}
}
