package tensor

import (
	"bytes"
	"slices"
	"testing"
	"unsafe"

	"github.com/weft-ml/weft/internal/sys/invariants"
	"github.com/weft-ml/weft/status"
)

func mustAlloc(t *testing.T, dtype DType, shape ...int64) Tensor {
	t.Helper()
	x, err := Alloc(dtype, shape)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func TestAllocateEveryType(t *testing.T) {
	for d := range DType(40) {
		x, err := Zeros(d, Shape{2, 3})
		if !d.Valid() {
			if status.CodeOf(err) != status.InvalidArgument {
				t.Errorf("%v: %v", d, err)
			}
			continue
		}
		if err != nil || x.DType() != d || x.NumElements() != 6 || len(x.Bytes()) != 6*d.Size() {
			t.Errorf("%v: %v, %v", d, x.String(), err)
		}
		if slices.ContainsFunc(x.Bytes(), func(b byte) bool { return b != 0 }) {
			t.Errorf("%v: elements are not zero", d)
		}
		if at := uintptr(unsafe.Pointer(unsafe.SliceData(x.Bytes()))); d.Size() > 0 && at%Alignment != 0 {
			t.Errorf("%v: elements are at %#x", d, at)
		}
		x.Release()
	}
}

func TestAllocationErrors(t *testing.T) {
	for _, test := range []struct {
		dtype DType
		shape Shape
		code  status.Code
	}{
		{Float32, Shape{-1}, status.InvalidArgument}, {Float32, Shape{1 << 62, 4}, status.InvalidArgument},
		{Float32, Shape{1 << 62}, status.ResourceExhausted}, {Float64, Shape{1 << 40}, status.ResourceExhausted},
		{String, Shape{1 << 40}, status.ResourceExhausted}, {Float32.Ref(), Shape{1}, status.InvalidArgument},
	} {
		if _, err := Alloc(test.dtype, test.shape); status.CodeOf(err) != test.code {
			t.Errorf("%v%v: got %v, want %v", test.dtype, test.shape, err, test.code)
		}
	}
}

func TestLimit(t *testing.T) {
	old := limit.Load()
	defer setLimit(old)
	setLimit(100)
	if _, err := Alloc(Float32, Shape{25}); err != nil {
		t.Error(err)
	}
	const want = "OOM when allocating tensor with shape[26] and type float"
	if _, err := Alloc(Float32, Shape{26}); err == nil || err.Error() != want {
		t.Errorf("got %v", err)
	}
}

// TestSizeClasses checks that each size fits its class, that a class above 64 bytes is at most 1.5
// times the size, and that the next smaller class is too small.
func TestSizeClasses(t *testing.T) {
	for size := 1; size < 1<<16; size++ {
		if c := classSize(classOf(size)); c < size || size > 64 && 2*c > 3*size {
			t.Fatalf("%d bytes have a class of %d bytes", size, c)
		}
	}
	for bit := 16; bit <= 38; bit++ {
		for _, size := range []int{1<<bit - 1, 1 << bit, 1<<bit + 1, 3 << (bit - 1), 3<<(bit-1) + 1} {
			if c := classOf(size); c >= numClasses || classSize(c) < size || c > 0 && classSize(c-1) >= size {
				t.Fatalf("%d bytes have class %d", size, c)
			}
		}
	}
}

func TestReferences(t *testing.T) {
	x := mustAlloc(t, Float32, 4)
	if !x.Exclusive() {
		t.Error("a new tensor is shared")
	}
	y := x.Retain()
	if x.Exclusive() || y.Exclusive() || !x.SharesBuffer(&y) {
		t.Error("one of two references is exclusive")
	}
	x.Release()
	if x.Initialized() || x.NumElements() != 0 || !y.Exclusive() {
		t.Error("the first release did not take effect")
	}
	x.Release() // releasing an uninitialized tensor does nothing
	y.Release()

	v := Vector[int32](1, 2)
	if v.Exclusive() {
		t.Error("memory of the caller is exclusive")
	}
}

func TestForeignBuffer(t *testing.T) {
	freed := 0
	mem := alignedBytes(8)
	x, err := FromBytes(Float32, Shape{2}, mem, NewForeign(mem, func() { freed++ }))
	if err != nil {
		t.Fatal(err)
	}
	y := x.Retain()
	x.Release()
	if freed != 0 {
		t.Error("freed while referenced")
	}
	y.Release()
	if freed != 1 {
		t.Errorf("freed %d times", freed)
	}
}

func TestFromBytes(t *testing.T) {
	mem := alignedBytes(65)
	mem[4] = 1
	x, err := FromBytes(Int32, Shape{2}, mem[:8], nil)
	if err != nil || &x.Bytes()[0] != &mem[0] || Values[int32](&x)[1] != 1 {
		t.Errorf("aligned memory: %v, %v", x.String(), err)
	}
	freed := false
	x, err = FromBytes(Int32, Shape{2}, mem[1:9], NewForeign(mem, func() { freed = true }))
	if err != nil || &x.Bytes()[0] == &mem[1] || !freed || Values[int32](&x)[0] != 1<<24 {
		t.Errorf("memory that is not aligned: %v, %v, freed: %v", x.String(), err, freed)
	}
	for _, bad := range []struct {
		dtype DType
		n     int
	}{{Int32, 7}, {Int32, 9}, {String, 8}, {Invalid, 8}} {
		if _, err := FromBytes(bad.dtype, Shape{2}, mem[:bad.n], nil); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%v in %d bytes: %v", bad.dtype, bad.n, err)
		}
	}
	if x, err := FromBytes(Float32, Shape{0}, nil, nil); err != nil || x.NumElements() != 0 || len(Values[float32](&x)) != 0 {
		t.Errorf("no elements: %v", err)
	}
}

// TestAlignedBytes checks the length, alignment and initial zeros of new buffers of various sizes.
func TestAlignedBytes(t *testing.T) {
	for _, size := range []int{1, 4 << 10, 4<<20 - Alignment, 4 << 20, 5<<20 + 3, 16 << 20} {
		mem := alignedBytes(size)
		if len(mem) != size || uintptr(unsafe.Pointer(unsafe.SliceData(mem)))%Alignment != 0 {
			t.Errorf("%d bytes at %p, want %d", len(mem), mem, size)
		}
		if i := bytes.IndexFunc(mem, func(r rune) bool { return r != 0 }); i >= 0 {
			t.Errorf("byte %d of %d is not zero", i, size)
		}
	}
}

func TestViews(t *testing.T) {
	x, err := FromSlice(Shape{3, 2}, []int16{1, 2, 3, 4, 5, 6})
	if err != nil {
		t.Fatal(err)
	}
	rows := x.Rows(1, 3)
	if got := Values[int16](&rows); !slices.Equal(got, []int16{3, 4, 5, 6}) || rows.Dim(0) != 2 || rows.Rank() != 2 {
		t.Errorf("rows are %v", got)
	}
	words, _ := FromSlice(Shape{3}, []string{"a", "b", "c"})
	some := words.Rows(1, 2)
	if got := Values[string](&some); !slices.Equal(got, []string{"b"}) {
		t.Errorf("rows of strings are %v", got)
	}
	flat, err := x.WithShape(Shape{6})
	if err != nil || !flat.SharesBuffer(&x) || flat.Rank() != 1 || x.Rank() != 2 {
		t.Errorf("reshaped to %v, %v", flat.Shape(), err)
	}
	if _, err := x.WithShape(Shape{5}); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("reshaped to another number of elements: %v", err)
	}
	if _, err := x.WithShape(Shape{-6}); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("reshaped to a negative dimension: %v", err)
	}
	if u, err := x.WithDType(Uint16); err != nil || u.DType() != Uint16 || x.DType() != Int16 {
		t.Errorf("read as uint16: %v, %v", u.String(), err)
	}
	if _, err := x.WithDType(Int32); err == nil {
		t.Error("read as elements of another size")
	}
	clone, err := x.Clone()
	if err != nil {
		t.Fatal(err)
	}
	Values[int16](&clone)[0] = 9
	if Value[int16](&x) != 1 || clone.SharesBuffer(&x) || !clone.Exclusive() {
		t.Error("a clone shares elements")
	}
	cw, err := words.Clone()
	if err != nil {
		t.Fatal(err)
	}
	Values[string](&cw)[0] = "z"
	if Value[string](&words) != "a" {
		t.Error("a clone shares strings")
	}
}

func TestMisusePanics(t *testing.T) {
	x := Vector[int32](1, 2)
	for name, f := range map[string]func(){
		"values of another type": func() { Values[float32](&x) },
		"rows beyond the end":    func() { x.Rows(1, 3) },
		"rows that end early":    func() { x.Rows(2, 1) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
	if _, err := FromSlice(Shape{3}, []int32{1}); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("too few values: %v", err)
	}
}

func TestByteSize(t *testing.T) {
	x := mustAlloc(t, Float64, 3)
	defer x.Release()
	words := Vector("abc", "")
	handles := Vector[*Handle](nil, nil)
	if x.ByteSize() != 24 || words.ByteSize() != 3+2*16 || handles.ByteSize() != 16 {
		t.Errorf("sizes are %d, %d, %d", x.ByteSize(), words.ByteSize(), handles.ByteSize())
	}
}

// TestBuffersAreReused checks that an allocation reuses a released small buffer. It retries because
// the garbage collector may empty the pool at any time.
func TestBuffersAreReused(t *testing.T) {
	for range 100 {
		x := mustAlloc(t, Uint8, 1000)
		at := &x.Bytes()[0]
		x.Release()
		y := mustAlloc(t, Uint8, 1010)
		again := &y.Bytes()[0] == at
		y.Release()
		if again {
			return
		}
	}
	t.Error("no buffer was reused")
}

func TestVariants(t *testing.T) {
	enc := EncodedVariant{TypeName: "L", Metadata: []byte("m")}
	if got, err := (VariantValue{Value: enc}).Encode(); err != nil || got.TypeName != "L" {
		t.Errorf("got %v, %v", got, err)
	}
	if got, err := (VariantValue{}).Encode(); err != nil || got.TypeName != "" {
		t.Errorf("the zero value is encoded as %v, %v", got, err)
	}
	if _, err := (VariantValue{Value: 1}).Encode(); status.CodeOf(err) != status.Unimplemented {
		t.Errorf("a value without an encoding: %v", err)
	}
}

// TestHeldBuffersAreCounted checks counts only with the build tag invariants.
func TestHeldBuffersAreCounted(t *testing.T) {
	before := heldBuffers()
	x, err := Alloc(Float32, Shape{100})
	if err != nil {
		t.Fatal(err)
	}
	y := x.Retain()
	if got := heldBuffers() - before; invariants.Enabled && got != 1 {
		t.Errorf("a tensor and a second reference to it hold %d buffers", got)
	}
	x.Release()
	y.Release()
	if got := heldBuffers() - before; got != 0 {
		t.Errorf("%d buffers are held after the last release", got)
	}
}

// TestReclaimer checks that Exclusive calls the reclaimer of a shared buffer, and that the next
// tensor with the buffer does not.
func TestReclaimer(t *testing.T) {
	x, err := Alloc(Uint8, Shape{1000})
	if err != nil {
		t.Fatal(err)
	}
	kept, calls := x.Retain(), 0
	reclaim := func() {
		calls++
		kept.Release()
	}
	setReclaimer(&x, &reclaim)
	if !x.Exclusive() || calls != 1 || !x.Exclusive() || calls != 1 {
		t.Errorf("the reclaimer was called %d times", calls)
	}
	buf := x.buf
	x.Release()
	if buf.reclaim.Load() != nil {
		t.Error("the next tensor has the reclaimer")
	}
	none, plain := Tensor{}, Vector[float32](1)
	setReclaimer(&none, &reclaim)
	setReclaimer(&plain, &reclaim)
	if none.Exclusive() || plain.Exclusive() {
		t.Error("a tensor without a shared buffer is exclusive")
	}
}
