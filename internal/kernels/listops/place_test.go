package listops

import (
	"runtime"
	"testing"

	"github.com/weft-ml/weft/internal/gpu/device"
	"github.com/weft-ml/weft/internal/gpu/hostgpu"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func openDevices(t *testing.T, n int) []*device.Device {
	t.Helper()
	var out []*device.Device
	for i, dev := range hostgpu.Open(hostgpu.Options{Devices: n, Memory: 4 << 20}) {
		d, err := device.Open(dev, device.Options{Name: "/device:GPU:0", Number: i})
		if err != nil {
			t.Skip(err)
		}
		t.Cleanup(d.Close)
		out = append(out, d)
	}
	return out
}

func variantOf(l *List) tensor.Tensor { return tensor.Scalar(tensor.VariantValue{Value: l}) }

func moveList(t *testing.T, l *List, to *device.Device) *List {
	t.Helper()
	v := variantOf(l)
	if device.IsPlaced(&v, to) {
		t.Fatal("the list is there")
	}
	v, err := device.PlaceNow(v, to)
	if err != nil {
		t.Fatal(err)
	}
	if !device.IsPlaced(&v, to) {
		t.Fatal("the list has not moved")
	}
	return asList(tensor.Value[tensor.VariantValue](&v))
}

// TestMove moves lists of lists that have many ways to an element to a device, to another one and
// back. The lists that were moved keep their elements.
func TestMove(t *testing.T) {
	const depth = 60
	innermost := func(l *List) *tensor.Tensor {
		for range depth {
			l = asList(tensor.Value[tensor.VariantValue](l.items.get(1)))
		}
		return l.items.get(0)
	}
	devices := openDevices(t, 2)
	l := sharedList(depth)
	on := moveList(t, l, devices[0])
	also := moveList(t, on, devices[1])
	for i, moved := range []*List{on, also} {
		if device.Of(innermost(moved)) != devices[i] {
			t.Errorf("the element is not on device %d", i)
		}
	}
	back := moveList(t, also, nil)
	for _, l := range []*List{l, back} {
		if v := innermost(l); v.OnDevice() || tensor.Value[float32](v) != 3 {
			t.Errorf("the element is %v, want 3", v)
		}
	}
	if first, second := asList(tensor.Value[tensor.VariantValue](on.items.get(0))), asList(tensor.Value[tensor.VariantValue](on.items.get(1))); first != second {
		t.Error("lists that were one are two after the move")
	}
	encoded, err := on.EncodeVariant()
	if err != nil || len(encoded.Tensors) != 2 {
		t.Errorf("encoded to %v, error %v", encoded, err)
	}
}

// TestMoveWithoutMemory moves a list that a device has no memory for. The copies of the first
// elements are released.
func TestMoveWithoutMemory(t *testing.T) {
	d := openDevices(t, 1)[0]
	list := func(n int) *List {
		l := &List{dtype: tensor.Float32, limit: -1, items: vector{}.resize(n + 1)}
		for i := range n {
			x, err := tensor.Zeros(tensor.Float32, tensor.Shape{1 << 18})
			if err != nil {
				t.Fatal(err)
			}
			l.items = l.items.set(i, &x)
		}
		return l
	}
	for range 3 {
		if _, err := device.PlaceNow(variantOf(list(6)), d); status.CodeOf(err) != status.ResourceExhausted {
			t.Fatalf("got error %v", err)
		}
		if n := d.Stats().InUse; n != 0 {
			t.Fatalf("%d bytes are in use", n)
		}
	}
	// of lists without references, which are garbage, and of one that is not
	for range 8 {
		l := moveList(t, list(3), d)
		if l.items.get(3) != nil || l.items.n != 4 {
			t.Error("an unset element is set")
		}
		runtime.KeepAlive(l)
	}
}
