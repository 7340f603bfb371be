package resource_test

import (
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/resource"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// bell counts how often it is rung.
type bell struct {
	rung   int
	closed bool
}

func (*bell) TypeName() string { return "N4test4BellE" }
func (b *bell) Close()         { b.closed = true }

// drum is another kind of resource.
type drum struct{ bell }

func (*drum) TypeName() string { return "N4test12_GLOBAL__N_14DrumE" }

func init() {
	named := []string{"container: string = ''", "shared_name: string = ''"}
	makeBell := func(c *kernel.Construction) (kernel.Kernel, error) {
		return resource.Maker[*bell]{Create: func(*kernel.Context, string) (*bell, error) { return &bell{}, nil }}.Kernel(c)
	}
	for name, out := range map[string]string{"Bell": "resource", "BellRef": "Ref(string)"} {
		kernel.Register(kernel.Op{
			Def:     opdef.Def{Name: name, Doc: "Creates a bell.", Out: []string{"handle: " + out}, Attrs: named, Stateful: true, Shape: opdef.UnknownShape},
			Kernels: kernel.Any(makeBell),
		})
	}
	kernel.Register(kernel.Op{
		Def: opdef.Def{Name: "Drum", Doc: "Creates a drum.", Out: []string{"handle: resource"}, Attrs: named, Stateful: true, Shape: opdef.UnknownShape},
		Kernels: kernel.Any(func(c *kernel.Construction) (kernel.Kernel, error) {
			return resource.Maker[*drum]{Create: func(*kernel.Context, string) (*drum, error) { return &drum{}, nil }}.Kernel(c)
		}),
	})
	ring := kernel.Any(kernel.Stateless(func(ctx *kernel.Context) error {
		b, err := resource.Find[*bell](ctx, 0)
		if err != nil {
			return err
		}
		b.rung++
		ctx.SetOutput(0, tensor.Scalar(int32(b.rung)))
		return nil
	}))
	for name, in := range map[string]string{"Ring": "resource", "RingRef": "Ref(string)", "RingNames": "string"} {
		kernel.Register(kernel.Op{
			Def: opdef.Def{
				Name: name, Doc: "Rings a bell.", In: []string{"handle: " + in}, Out: []string{"rung: int32"}, Shape: opdef.ScalarShape,
			},
			Kernels: ring,
		})
	}
}

// open creates the resource of an operation and returns its node and output.
func open(t *testing.T, env *kerneltest.Env, op string, attrs opdef.Attrs) (*kerneltest.Node, kernel.Value) {
	t.Helper()
	n, err := env.Make(op, attrs)
	if err != nil {
		t.Fatal(err)
	}
	out, err := n.RunValues()
	if err != nil {
		t.Fatal(err)
	}
	return n, out[0]
}

func ring(t *testing.T, env *kerneltest.Env, op string, handle kernel.Value) (int32, error) {
	t.Helper()
	n, err := env.Make(op, nil)
	if err != nil {
		t.Fatal(err)
	}
	out, err := n.RunValues(kernel.Value{Tensor: handle.Tensor.Retain(), Ref: handle.Ref})
	if err != nil {
		return 0, err
	}
	return tensor.Value[int32](&out[0].Tensor), nil
}

func TestOneResourceByThreeNames(t *testing.T) {
	env := kerneltest.NewEnv()
	shared := opdef.Attrs{"shared_name": "tower"}
	_, handle := open(t, env, "Bell", shared)
	_, ref := open(t, env, "BellRef", shared)
	names := kernel.Value{Tensor: tensor.Vector("localhost", "tower")}
	for i, by := range []struct {
		op    string
		value kernel.Value
	}{{"Ring", handle}, {"RingRef", ref}, {"RingNames", names}} {
		if n, err := ring(t, env, by.op, by.value); err != nil || n != int32(i+1) {
			t.Errorf("%s: rung %d times, error %v", by.op, n, err)
		}
	}
}

func TestPrivateResourceIsDeletedWithItsKernel(t *testing.T) {
	env := kerneltest.NewEnv()
	n, first := open(t, env, "Bell", nil)
	_, second := open(t, env, "Bell", nil)
	for range 2 {
		if _, err := ring(t, env, "Ring", first); err != nil {
			t.Fatal(err)
		}
	}
	if rung, err := ring(t, env, "Ring", second); err != nil || rung != 1 {
		t.Errorf("the second bell was rung %d times, error %v", rung, err)
	}
	n.Close()
	if _, err := ring(t, env, "Ring", first); status.CodeOf(err) != status.NotFound {
		t.Errorf("ringing a deleted bell: %v", err)
	}
}

func TestErrors(t *testing.T) {
	env := kerneltest.NewEnv()
	_, drum := open(t, env, "Drum", opdef.Attrs{"shared_name": "kit"})
	elsewhere := *tensor.Value[*tensor.Handle](&drum.Tensor)
	elsewhere.Device = "/job:other/replica:0/task:0/device:CPU:0"
	for _, tt := range []struct {
		op    string
		value tensor.Tensor
		code  status.Code
		want  string
	}{
		{"Ring", drum.Tensor, status.InvalidArgument, "of type 'test::(anonymous namespace)::Drum' (hash code "},
		{"Ring", tensor.Scalar(&elsewhere), status.InvalidArgument, "Trying to access resource kit located in device /job:other/"},
		{"Ring", tensor.Scalar[*tensor.Handle](nil), status.InvalidArgument, "not a handle"},
		{"RingNames", tensor.Vector("localhost"), status.InvalidArgument, "Resource handle must have 2 elements, but had shape: [1]"},
		{"RingNames", tensor.Vector("localhost", "x"), status.NotFound, "Resource localhost/x/N4test4BellE does not exist."},
		{"RingNames", tensor.Vector("elsewhere", "x"), status.NotFound, "Container elsewhere does not exist. (Could not find resource: elsewhere/x)"},
	} {
		_, err := ring(t, env, tt.op, kernel.Value{Tensor: tt.value})
		if status.CodeOf(err) != tt.code || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s of %v: error %v, want %q", tt.op, tt.value, err, tt.want)
		}
	}
	for name, want := range map[string]string{"container": "container contains invalid characters: _", "shared_name": "shared_name cannot start with '_':_"} {
		if _, err := env.Make("Bell", opdef.Attrs{name: "_"}); status.CodeOf(err) != status.InvalidArgument || err.Error() != want {
			t.Errorf("%s _: error %v, want %q", name, err, want)
		}
	}
}
