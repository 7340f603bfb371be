package random

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"strings"
	"sync"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// TestStreams compares successive calls of one node with recorded results of TensorFlow. They must
// be equal to the bit unless a case has a tolerance.
func TestStreams(t *testing.T) {
	for _, file := range []string{"streams", "stateless", "distributions", "truncated", "candidates"} {
		testStreams(t, file)
	}
}

func testStreams(t *testing.T, file string) {
	cases, err := kerneltest.ReadCases("testdata/" + file + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	for i := range cases {
		c := &cases[i]
		t.Run(fmt.Sprintf("%s:%d/%s", file, c.Line, c.Op), func(t *testing.T) {
			node, err := kerneltest.NewEnv().Make(c.Op, c.Attrs)
			if err != nil {
				t.Fatal(err)
			}
			for want := c.Out; len(want) > 0; {
				got, err := node.Run(c.In...)
				if err != nil {
					t.Fatal(err)
				}
				for i := range got {
					if diff := kerneltest.Diff(&got[i], &want[i], c.Tol); diff != "" {
						t.Fatalf("output %d, %d before the end: %s", i, len(want), diff)
					}
					if c.Tol == 0 && !bytes.Equal(got[i].Bytes(), want[i].Bytes()) {
						t.Errorf("output %d, %d before the end: got %v, want %v", i, len(want), got[i].Go(), want[i].Go())
					}
				}
				want = want[len(got):]
			}
		})
	}
}

func TestErrorsAndShapes(t *testing.T) {
	kerneltest.RunCases(t, "testdata/errors.txt", "testdata/sobol.txt", "testdata/stateless_errors.txt", "testdata/distributions_errors.txt",
		"testdata/truncated_errors.txt", "testdata/candidates_errors.txt", "testdata/stochasticcast.txt")
}

// TestLargeTensors compares checksums of tensors that consist of several blocks.
func TestLargeTensors(t *testing.T) {
	for _, tt := range []struct {
		op    string
		dtype tensor.DType
		crc   uint32
	}{
		{"RandomUniform", tensor.Float16, 0x2cd11d20},
		{"RandomUniform", tensor.BFloat16, 0xb807f3bb},
		{"RandomUniform", tensor.Float32, 0xa67a39d0},
		{"RandomUniform", tensor.Float64, 0x7694fb56},
		{"RandomStandardNormal", tensor.Float16, 0x16ea7aa2},
		{"RandomStandardNormal", tensor.BFloat16, 0xc44e37d1},
		{"RandomStandardNormal", tensor.Float32, 0xaa1c0429},
		{"RandomStandardNormal", tensor.Float64, 0x4a488bf9},
		{"TruncatedNormal", tensor.Float16, 0x06031549},
		{"TruncatedNormal", tensor.BFloat16, 0x8b5d4add},
		{"TruncatedNormal", tensor.Float32, 0xb3b342ba},
		{"TruncatedNormal", tensor.Float64, 0x51add847},
	} {
		attrs := opdef.Attrs{"dtype": tt.dtype, "T": tensor.Int32, "seed": int64(42), "seed2": int64(7)}
		out := kerneltest.Run(t, tt.op, attrs, tensor.Vector[int32](300, 101))
		if crc := crc32.ChecksumIEEE(out[0].Bytes()); crc != tt.crc {
			t.Errorf("%s of %v: checksum %#08x, want %#08x", tt.op, tt.dtype, crc, tt.crc)
		}
	}
}

// TestShortCounter checks that a counter of one word is rejected. TensorFlow reads past its end.
func TestShortCounter(t *testing.T) {
	_, err := kerneltest.Try("StatelessRandomUniformV2", opdef.Attrs{"dtype": tensor.Float32, "Tshape": tensor.Int32},
		tensor.Vector[int32](2), tensor.Vector[uint64](5), tensor.Vector[uint64](3), tensor.Scalar[int32](algPhilox))
	if want := "counter must be a vector with length at least 2; got shape: [1]."; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestUnseeded checks that nodes without seeds differ.
func TestUnseeded(t *testing.T) {
	attrs := opdef.Attrs{"dtype": tensor.Float32, "T": tensor.Int32}
	a := kerneltest.Run(t, "RandomUniform", attrs, tensor.Vector[int32](8))
	b := kerneltest.Run(t, "RandomUniform", attrs, tensor.Vector[int32](8))
	if bytes.Equal(a[0].Bytes(), b[0].Bytes()) {
		t.Errorf("two nodes without seeds drew %v", a[0].Go())
	}
}

// TestConcurrentCalls checks that concurrent calls take disjoint parts of the stream, and together
// cover it.
func TestConcurrentCalls(t *testing.T) {
	attrs := opdef.Attrs{"dtype": tensor.Float32, "T": tensor.Int32, "seed": int64(3), "seed2": int64(4)}
	const calls = 16
	draw := func(run func(n *kerneltest.Node, i int)) {
		node, err := kerneltest.NewEnv().Make("RandomUniform", attrs)
		if err != nil {
			t.Fatal(err)
		}
		for i := range calls {
			run(node, i)
		}
	}
	want := map[float32]bool{}
	draw(func(n *kerneltest.Node, _ int) {
		out, err := n.Run(tensor.Vector[int32](1))
		if err != nil {
			t.Fatal(err)
		}
		want[tensor.Value[float32](&out[0])] = true
	})
	var wg sync.WaitGroup
	got := make([]float32, calls)
	draw(func(n *kerneltest.Node, i int) {
		wg.Go(func() {
			out, err := n.Run(tensor.Vector[int32](1))
			if err != nil {
				t.Error(err)
				return
			}
			got[i] = tensor.Value[float32](&out[0])
		})
	})
	wg.Wait()
	for _, v := range got {
		if !want[v] {
			t.Errorf("%v is not in the stream or was drawn twice", v)
		}
		delete(want, v)
	}
}
