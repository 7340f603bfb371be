package train

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// saverBuilder adds the nodes that save and restore variables.
type saverBuilder struct {
	scope   *op.Scope
	vars    []savedVariable
	file    op.Output   // string scalar, fed with the prefix
	save    op.Output   // fetched to save
	restore *graph.Node // run to restore
}

// partsSuffix, appended to the prefix of a checkpoint, is the prefix of the parts that tasks write
// before they are merged: in a folder next to the checkpoint.
const partsSuffix = "_temp/part"

func (b *saverBuilder) addFilename() {
	scalar := tensor.MakePartial()
	name := op.PlaceholderWithDefault(b.scope.Named("filename"), op.Const(b.scope.InScope("filename").Named("input"), "model"), scalar)
	b.file = op.PlaceholderWithDefault(b.scope.Named("Const"), name, scalar)
}

// addWhole adds nodes that save and restore all variables on one task.
func (b *saverBuilder) addWhole() {
	near := b.scope.WithDevice("/device:CPU:0")
	saved := b.addSave(near, b.file, b.vars)
	b.save = op.Identity(b.scope.Named("control_dependency").WithControlDependencies(saved), b.file)
	b.restore = op.Group(b.scope.Named("restore_all"), b.addRestore(near, b.vars)...)
}

// addSharded adds nodes that save and restore the variables of each device on that device. The last
// device merges the parts into one checkpoint.
func (b *saverBuilder) addSharded() {
	temp := op.StringJoin(b.scope.WithDevice("/device:CPU:0"), []op.Output{b.file, op.Const(b.scope, partsSuffix)})
	devices, byDevice := b.byDevice()
	shards := op.Const(b.scope.Named("num_shards"), int32(len(devices)))
	var saves, restores []*graph.Node
	var parts []op.Output
	var last *op.Scope
	for i, dev := range devices {
		last = b.scope
		if dev != "" {
			last = b.scope.WithDevice(dev)
		}
		part := op.ShardedFilename(last, temp, op.Const(last.InScope("ShardedFilename").Named("shard"), int32(i)), shards)
		parts, saves = append(parts, part), append(saves, b.addSave(last, part, byDevice[dev]))
		restores = append(restores, op.Group(b.scope.Named("restore_shard"), b.addRestore(last, byDevice[dev])...))
	}
	all := op.Pack(last.WithControlDependencies(saves...).InScope("MergeV2Checkpoints").Named("checkpoint_prefixes"), parts)
	merged := op.MergeV2Checkpoints(last, all, b.file)
	b.save = op.Identity(last.WithControlDependencies(merged), b.file)
	b.restore = op.Group(b.scope.Named("restore_all"), restores...)
}

// byDevice groups the variables by the device that writes them. The devices are in order of names.
func (b *saverBuilder) byDevice() (devices []string, vars map[string][]savedVariable) {
	vars = map[string][]savedVariable{}
	for _, v := range b.vars {
		dev := firstCPU(v.Handle.Node.Device)
		if vars[dev] == nil {
			devices = append(devices, dev)
		}
		vars[dev] = append(vars[dev], v)
	}
	slices.Sort(devices)
	return devices, vars
}

// firstCPU returns CPU device 0 of the task of a device, or the device itself if it is malformed.
func firstCPU(name string) string {
	spec, err := device.Parse(name)
	if err != nil {
		return name
	}
	cpu, err := device.Parse("/device:CPU:0")
	if err != nil {
		return name
	}
	return spec.With(cpu).String()
}

func (b *saverBuilder) addSave(s *op.Scope, file op.Output, vars []savedVariable) *graph.Node {
	values := make([]op.Output, len(vars))
	for i, v := range vars {
		if values[i] = v.Handle; v.Resource {
			values[i] = v.Value
		}
	}
	names, specs := namesAndSlices(vars)
	in := s.InScope("SaveV2")
	return op.SaveV2(s, file, op.Const(in.Named("tensor_names"), names), op.Const(in.Named("shape_and_slices"), specs), values)
}

// addRestore adds one node that reads variables, and nodes on the devices of the variables that
// assign the values.
func (b *saverBuilder) addRestore(s *op.Scope, vars []savedVariable) []*graph.Node {
	types := make([]tensor.DType, len(vars))
	for i, v := range vars {
		types[i] = v.DType
	}
	names, specs := namesAndSlices(vars)
	in := s.InScope("RestoreV2")
	read := op.RestoreV2(s, b.file, op.Const(in.Named("tensor_names"), names), op.Const(in.Named("shape_and_slices"), specs), types)
	if len(read) != len(vars) {
		return nil
	}
	assigned := make([]*graph.Node, len(vars))
	for i, v := range vars {
		assigned[i] = v.Variable.Assign(b.scope.ColocateWith(v.Handle.Node), read[i])
	}
	return assigned
}

// namesAndSlices returns the names of variables in a checkpoint and the slice that each holds.
func namesAndSlices(vars []savedVariable) (names, specs []string) {
	for _, v := range vars {
		names, specs = append(names, v.name), append(specs, sliceSpec(v))
	}
	return names, specs
}

// sliceSpec returns TensorFlow's notation for the slice of a tensor that a variable holds: the
// dimensions of the tensor, then the start and length of the slice in each, as in "7 2 3,2:0,2". It
// is "" for the whole tensor.
func sliceSpec(v savedVariable) string {
	if !v.isPart {
		return ""
	}
	var spec strings.Builder
	for _, d := range v.Part.Shape {
		fmt.Fprintf(&spec, "%d ", d)
	}
	for i, d := range v.Shape {
		start := int64(0)
		if i == 0 {
			start = v.Part.Offset
		} else {
			spec.WriteByte(':')
		}
		fmt.Fprintf(&spec, "%d,%d", start, d)
	}
	return spec.String()
}
