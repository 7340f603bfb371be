package data

import (
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	const doc = "Returns the graph that creates a dataset as a serialized GraphDef."
	for name, attrs := range map[string][]string{
		"DatasetToGraph": {
			"stateful_whitelist: list(string) >= 0 = []", "allow_stateful: bool = false", "strip_device_assignment: bool = false",
		},
		"DatasetToGraphV2": {"external_state_policy: int = 0", "strip_device_assignment: bool = false"},
	} {
		kernel.RegisterNew(opdef.Def{
			Name: name, Doc: doc, In: []string{"input_dataset: variant"}, Out: []string{"graph: string"}, Attrs: attrs, Shape: opdef.ScalarShape,
		}, newToGraph)
	}
	kernel.RegisterFunc(opdef.Def{
		Name: "DatasetFingerprint", Doc: "Returns the fingerprint of a dataset. It does not depend on the names of nodes and functions.",
		In: []string{"input_dataset: variant"}, Out: []string{"fingerprint: uint64"}, Shape: opdef.ScalarShape,
	}, func(ctx *kernel.Context) error {
		if _, err := datasetOf(ctx.Input(0)); err != nil {
			return err
		}
		g, err := writeGraph(ctx.Input(0), false)
		if err != nil {
			return status.FailedPreconditionf("Failed to serialize the input pipeline graph: %s", status.From(err).Message)
		}
		sum, err := fingerprint(g)
		ctx.SetOutput(0, tensor.Scalar(sum))
		return err
	})
	kernel.RegisterNew(opdef.Def{
		Name: "DatasetFromGraph", Doc: "Creates the dataset of a graph that DatasetToGraph returned.",
		In: []string{"graph_def: string"}, Out: []string{"handle: variant"}, Shape: opdef.ScalarShape,
	}, iterating(func(n *node, ctx *kernel.Context, r *run) error {
		text, err := scalar[string](n, ctx, "graph_def")
		if err != nil {
			return err
		}
		d, err := loadGraph(n.Functions, r, text)
		if err == nil {
			ctx.SetOutput(0, d)
		}
		return err
	}))
}

// failOnState is the value of TensorFlow's ExternalStatePolicy that rejects functions whose state
// is not part of a graph. The policy to warn is treated as the policy to ignore.
const failOnState = 2

func newToGraph(c *kernel.Construction) (kernel.Kernel, error) {
	policy := c.Attrs.Int("external_state_policy")
	if c.Op.Name == "DatasetToGraph" && !c.Attrs.Bool("allow_stateful") {
		policy = failOnState
	}
	return kernel.Func(func(ctx *kernel.Context) error {
		d, err := datasetOf(ctx.Input(0))
		if err != nil {
			return err
		}
		policy := policy
		if p, ok := statePolicy(options(d)); ok {
			policy = p
		}
		g, err := writeGraph(ctx.Input(0), policy == failOnState)
		if err != nil {
			return status.FailedPreconditionf("Failed to serialize the input pipeline graph: %s", status.From(err).Message)
		}
		if c.Attrs.Bool("strip_device_assignment") {
			stripDevices(g.GetLibrary())
		}
		text, err := pbconv.MarshalText(g)
		if err == nil {
			ctx.SetOutput(0, tensor.Scalar(text))
		}
		return err
	}), nil
}

// statePolicy returns the policy in serialized options.
func statePolicy(options string) (policy int, ok bool) {
	const field = 6 // external_state_policy of tensorflow.data.Options
	v, ok := varintField(options, field)
	return int(v), ok
}

// varintField returns the number in a field of a serialized message.
func varintField(message string, field protowire.Number) (v uint64, ok bool) {
	eachField(message, func(num protowire.Number, typ protowire.Type, value []byte) {
		if num == field && typ == protowire.VarintType {
			v, _ = protowire.ConsumeVarint(value)
			ok = true
		}
	})
	return v, ok
}

// messageField returns the message in a field of a serialized message. Repeated occurrences are
// merged.
func messageField(message string, field protowire.Number) (all string) {
	eachField(message, func(num protowire.Number, typ protowire.Type, value []byte) {
		if num == field && typ == protowire.BytesType {
			b, _ := protowire.ConsumeBytes(value)
			all += string(b)
		}
	})
	return all
}

// eachField calls f with each field of a serialized message, up to the first malformed one.
func eachField(message string, f func(num protowire.Number, typ protowire.Type, value []byte)) {
	for b := []byte(message); len(b) > 0; {
		num, typ, n := protowire.ConsumeTag(b)
		if n < 0 {
			return
		}
		size := protowire.ConsumeFieldValue(num, typ, b[n:])
		if size < 0 {
			return
		}
		f(num, typ, b[n:n+size])
		b = b[n+size:]
	}
}

// stripDevices removes the parts of nodes' devices that depend on the task. Python calls keep their
// device, because they must run in the process of the Python program.
func stripDevices(lib *pb.FunctionDefLibrary) {
	for _, f := range lib.GetFunction() {
		for _, n := range f.GetNodeDef() {
			if n.GetDevice() == "" || n.GetOp() == "PyFunc" {
				continue
			}
			if spec, err := device.Parse(n.GetDevice()); err == nil {
				n.Device = device.Spec{Replica: device.Unset, Task: device.Unset, Type: spec.Type, ID: spec.ID}.String()
			}
		}
	}
}
