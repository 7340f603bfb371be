package gpu

import (
	"context"
	goflag "flag"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/driver"
	"github.com/weft-ml/weft/internal/gpu/hostgpu"
	"github.com/weft-ml/weft/internal/gpu/source"
	_ "github.com/weft-ml/weft/internal/gpu/twins"
	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestRecordedOnDevice runs the recorded cases of all families whose operations have kernels of
// this package on a device in software. The results are TensorFlow's for a CPU.
func TestRecordedOnDevice(t *testing.T) {
	runRecorded(t, hostgpu.Open(hostgpu.Options{Devices: 1})[0])
}

// unchecked are errors of values, which kernels on a device do not look at. So do TensorFlow's.
var unchecked = []string{"Integer division by zero", "Integers to negative integer powers are not allowed",
	"updates must not contain 0", "Received a label value", "seq_lens(", "argmax[", "indices", "segment_ids[", "Index ", "Bad: indices",
	"Invalid number of segments", "Segment id -1 out of range [0, 3).", "lr is not a positive scalar", "l1 regularization strength is not a non-negative",
	"l2 regularization strength is not a non-negative"}

var operations = goflag.String("operations", "", "regular expression of the operations whose recorded cases run")

func runRecorded(t *testing.T, d driver.Device) {
	chosen, err := regexp.Compile(*operations)
	if err != nil {
		t.Fatal(err)
	}
	gpu, err := device.Open(d, device.Options{Name: "/job:localhost/replica:0/task:0/device:GPU:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer gpu.Close()
	files, err := filepath.Glob("../*/testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no cases", err)
	}
	b := &bench{gpu: gpu, device: &kernel.Device{
		Name: gpu.Name(), Type: kernel.GPU, Resources: kernel.NewResources("localhost"), GPU: gpu,
	}}
	ran, ops := 0, map[string]bool{}
	for _, file := range files {
		cases, err := kerneltest.ReadCases(file)
		if err != nil {
			continue // a file of another kind
		}
		for i := range cases {
			c := &cases[i]
			if c.Kind != "case" || own[c.Op] == nil || !chosen.MatchString(c.Op) {
				continue
			}
			if done := b.run(t, filepath.Base(filepath.Dir(filepath.Dir(file)))+"/"+filepath.Base(file), c); done {
				ran++
				ops[c.Op] = true
			}
		}
	}
	var never []string
	for op := range own {
		if !ops[op] {
			never = append(never, op)
		}
	}
	slices.Sort(never)
	t.Logf("%d cases of %d operations; without a case: %s", ran, len(ops), strings.Join(never, " "))
	t.Logf("detours: %v", device.Detours())
}

// bench runs nodes on a device.
type bench struct {
	gpu    *device.Device
	device *kernel.Device
}

// run runs a case, unless it has no kernel of this package.
func (b *bench) run(t *testing.T, file string, c *kerneltest.Case) bool {
	def, _ := kernel.Default.LookupOp(c.Op)
	attrs, err := def.CheckAttrs("node", c.Attrs)
	if err != nil {
		return false // an error of the attributes
	}
	impl := kernel.Default.Find(c.Op, kernel.GPU, attrs)
	if impl == nil || impl.Priority == detourPriority || allOnHost(def, impl.Host) {
		return false
	}
	if (c.Op == "SegmentMax" || c.Op == "SegmentMin") && hasNaN(&c.In[0]) {
		return false // which of NaN and a number wins depends on their order on a CPU alone
	}
	if slices.ContainsFunc(unchecked, func(text string) bool { return strings.HasPrefix(c.Error, text) }) {
		return false
	}
	outs, after, err := b.compute(def, attrs, impl, c)
	switch {
	case err != nil && c.Code == "":
		t.Errorf("%s:%d: %s: %v", file, c.Line, c.Op, err)
		return true
	case c.Code != "":
		if err == nil || status.CodeOf(err).String() != c.Code || !strings.Contains(err.Error(), c.Error) {
			t.Errorf("%s:%d: %s: error %v, want %s: %s", file, c.Line, c.Op, err, c.Code, c.Error)
		}
		return true
	}
	tol := max(c.Tol, map[bool]float64{true: 1e-5, false: 0}[len(outs) > 0 && outs[0].DType() == tensor.Float32],
		map[bool]float64{true: 4e-3, false: 0}[len(outs) > 0 && outs[0].DType() == tensor.Float16],
		map[bool]float64{true: 2e-2, false: 0}[len(outs) > 0 && outs[0].DType() == tensor.BFloat16])
	for i := range outs {
		if diff := kerneltest.Diff(&outs[i], &c.Out[i], tol); diff != "" {
			t.Errorf("%s:%d: %s: output %d: %s", file, c.Line, c.Op, i, diff)
		}
	}
	for i := range after {
		if diff := kerneltest.Diff(&after[i], &c.After[i], max(tol, 1e-5)); diff != "" {
			t.Errorf("%s:%d: %s: variable %d: %s", file, c.Line, c.Op, i, diff)
		}
	}
	return true
}

func hasNaN(t *tensor.Tensor) bool {
	return t.DType().IsFloating() && strings.Contains(strings.ToLower(t.Summary(t.NumElements())), "nan")
}

// compute runs the operation of a case once. It returns the outputs and the variables.
func (b *bench) compute(def *opdef.Op, attrs opdef.Attrs, impl *kernel.Impl, c *kerneltest.Case) (outs, after []tensor.Tensor, err error) {
	con := &kernel.Construction{Node: "node", Op: def, Attrs: attrs, Device: b.device}
	if con.Inputs, err = def.InputTypes(attrs); err != nil {
		return nil, nil, err
	}
	if con.Outputs, err = def.OutputTypes(attrs); err != nil {
		return nil, nil, err
	}
	k, err := impl.New(con)
	if err != nil {
		return nil, nil, err
	}
	memory := kernel.MemoryOf(con, impl.Host)
	values, outputs := make([]kernel.Value, len(c.In)), make([]kernel.Value, len(con.Outputs))
	vars := make([]*kernel.Variable, len(c.Vars))
	for i := range c.In {
		in := c.In[i].Retain()
		at := slices.Index(c.Vars, i)
		if (at >= 0 || !memory.In[i]) && in.DType().Size() > 0 {
			if in, err = b.gpu.ToDevice(&c.In[i]); err != nil {
				return nil, nil, err
			}
		}
		if at < 0 {
			values[i].Tensor = in
			continue
		}
		vars[at] = kernel.NewVariable()
		vars[at].Store(in)
		if con.Inputs[i].IsRef() {
			values[i].Ref = vars[at]
			continue
		}
		values[i].Tensor = tensor.Scalar(&tensor.Handle{
			Device: b.device.Name, Container: "localhost", Name: "v", TypeName: vars[at].TypeName(), Resource: vars[at],
		})
	}
	ctx := &kernel.Context{
		Step:   &kernel.Step{ID: 1, Context: context.Background(), Resources: kernel.NewResources("step")},
		Device: b.device, Node: "node",
	}
	ctx.Bind(values, outputs, con.Outputs)
	if err := protect(k, ctx); err != nil {
		return nil, nil, err
	}
	for i := range outputs {
		if outputs[i].Ref != nil {
			continue
		}
		t, err := b.host(&outputs[i].Tensor)
		if err != nil {
			return nil, nil, err
		}
		outs = append(outs, t)
	}
	for _, v := range vars {
		value := v.Load()
		t, err := b.host(&value)
		if err != nil {
			return nil, nil, err
		}
		after = append(after, t)
	}
	return outs, after, nil
}

func (b *bench) host(t *tensor.Tensor) (tensor.Tensor, error) {
	if !t.OnDevice() {
		return *t, nil
	}
	return b.gpu.Host(t)
}

// TestKernelTypes compares the list of kernels with the source.
func TestKernelTypes(t *testing.T) {
	for name, types := range typesByKernel {
		if len(types) == 0 {
			t.Errorf("%s has no types", name)
		}
		for s, dtype := range source.TypesByName {
			has := false
			for _, form := range []string{"", "_rows", "_i64_rows"} {
				has = has || source.Find(name+"_"+s+form) != nil
			}
			if has != slices.Contains(types, dtype) {
				t.Errorf("%s: the source has a kernel for %v: %v", name, dtype, has)
			}
		}
	}
}
