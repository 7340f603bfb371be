package function

import (
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

func init() {
	attrs := []string{
		"Tin: list(type) >= 0", "Tout: list(type) >= 0", "f: func", "config: string = ''", "config_proto: string = ''",
		"executor_type: string = ''",
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "PartitionedCall", Doc: "Calls the function f, which has no effects.",
			In: []string{"args: Tin"}, Out: []string{"output: Tout"}, Attrs: attrs, Shape: opdef.UnknownShape,
		},
		Kernels: kernel.Any(newCall),
	})
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "StatefulPartitionedCall", Doc: "Calls the function f.",
			In: []string{"args: Tin"}, Out: []string{"output: Tout"}, Attrs: attrs, Shape: opdef.UnknownShape,
			Stateful: true, Distributed: true,
		},
		Kernels: kernel.Any(newCall),
	})
}

func newCall(c *kernel.Construction) (kernel.Kernel, error) {
	f, err := instantiate(c, c.Attrs.Func("f"))
	if err != nil {
		return nil, err
	}
	return &selected{choose: func(*kernel.Context) (kernel.Function, error) { return f, nil }}, nil
}
