package function

import (
	"sync"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "RemoteCall", Doc: "Calls the function f on the given device, which may be on another task.",
		In: []string{"target: string", "args: Tin"}, Out: []string{"output: Tout"},
		Attrs: []string{"Tin: list(type) >= 1", "Tout: list(type) >= 1", "f: func"}, Shape: opdef.UnknownShape, Stateful: true,
	}, newRemoteCall)
}

func newRemoteCall(c *kernel.Construction) (kernel.Kernel, error) {
	if c.Functions == nil {
		return nil, errNoLibrary
	}
	targets := &targets{functions: c.Functions, fn: c.Attrs.Func("f"), made: map[string]kernel.Function{}}
	return &selected{skip: 1, choose: targets.choose}, nil
}

// maxTargets bounds the number of devices for which a node caches functions.
const maxTargets = 1000

// targets caches the functions of a node by target device.
type targets struct {
	functions kernel.Functions
	fn        opdef.Func

	mu   sync.Mutex
	made map[string]kernel.Function // guarded by mu
}

func (t *targets) choose(ctx *kernel.Context) (kernel.Function, error) {
	in := ctx.Input(0)
	if in.Rank() > 0 {
		return nil, status.InvalidArgumentf("target must be a scalar, got a tensor of shape %v", in.Shape())
	}
	name := tensor.Value[string](in)
	t.mu.Lock()
	defer t.mu.Unlock()
	if f, ok := t.made[name]; ok {
		return f, nil
	}
	f, err := t.functions.InstantiateOn(name, t.fn)
	if err == nil && len(t.made) < maxTargets {
		t.made[name] = f
	}
	return f, err
}
