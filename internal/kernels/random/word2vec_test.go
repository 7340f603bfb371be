package random

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/test/kerneltest"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// TestSkipgram compares two calls, and one after the next pairs were computed, with TensorFlow
// 1.15.
func TestSkipgram(t *testing.T) {
	type batch struct {
		epoch            int32
		words            int64
		examples, labels []int32
	}
	for _, tt := range []struct {
		attrs opdef.Attrs
		words []string
		first [2]batch
		later batch // call 251
	}{
		{
			opdef.Attrs{},
			[]string{"UNK", "a", "b", "c", "d", "e"},
			[2]batch{
				{248, 750, []int32{2, 2, 2, 1, 1, 1, 1, 2, 2, 2, 2, 2}, []int32{1, 2, 2, 2, 2, 2, 4, 2, 1, 2, 4, 2}},
				{248, 750, []int32{2, 4, 4, 5, 5, 5, 5, 5, 5, 0, 0, 2}, []int32{4, 2, 5, 2, 2, 4, 0, 2, 3, 5, 2, 4}},
			},
			batch{499, 1522, []int32{3, 3, 3, 2, 2, 0, 0, 2, 2, 2, 2, 2}, []int32{3, 2, 0, 3, 0, 2, 2, 2, 0, 2, 4, 2}},
		},
		{
			opdef.Attrs{"subsample": float32(0), "min_count": int64(3)},
			[]string{"UNK", "a", "b", "c", "d", "e", "f"},
			[2]batch{
				{19, 745, []int32{3, 3, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2}, []int32{1, 1, 3, 1, 2, 1, 3, 1, 2, 1, 3, 1}},
				{19, 745, []int32{2, 2, 2, 2, 1, 1, 1, 1, 3, 3, 5, 5}, []int32{1, 1, 3, 5, 1, 2, 3, 5, 1, 5, 3, 3}},
			},
			batch{39, 1485, []int32{1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2}, []int32{1, 2, 3, 2, 4, 5, 2, 3, 1, 4, 5, 1}},
		},
	} {
		tt.attrs["filename"], tt.attrs["batch_size"], tt.attrs["window_size"] = "testdata/words.txt", int64(12), int64(3)
		node, err := kerneltest.NewEnv().Make("Skipgram", tt.attrs)
		if err != nil {
			t.Fatal(err)
		}
		check := func(want batch) {
			t.Helper()
			out, err := node.Run()
			if err != nil {
				t.Fatal(err)
			}
			got := batch{tensor.Value[int32](&out[3]), tensor.Value[int64](&out[4]), tensor.Values[int32](&out[5]), tensor.Values[int32](&out[6])}
			if words := tensor.Values[string](&out[0]); !slices.Equal(words, tt.words) {
				t.Errorf("got vocabulary %q, want %q", words, tt.words)
			}
			if got.epoch != want.epoch || got.words != want.words || !slices.Equal(got.examples, want.examples) || !slices.Equal(got.labels, want.labels) {
				t.Errorf("got %v, want %v", got, want)
			}
		}
		check(tt.first[0])
		check(tt.first[1])
		for range 248 {
			if _, err := node.Run(); err != nil {
				t.Fatal(err)
			}
		}
		check(tt.later)
	}
}

func TestSkipgramErrors(t *testing.T) {
	for _, tt := range []struct {
		attrs opdef.Attrs
		want  string
	}{
		{opdef.Attrs{"filename": "testdata/words.txt", "batch_size": int64(1), "window_size": int64(6)},
			"INVALID_ARGUMENT: The text file testdata/words.txt contains too little data: 51 words"},
		{opdef.Attrs{"filename": "testdata/words.txt", "batch_size": int64(-1)},
			"INVALID_ARGUMENT: batch_size must not be negative and window_size must be positive, got -1 and 5"},
	} {
		if _, err := kerneltest.NewEnv().Make("Skipgram", tt.attrs); err == nil || err.Error() != tt.want && "INVALID_ARGUMENT: "+err.Error() != tt.want {
			t.Errorf("got error %v, want %s", err, tt.want)
		}
	}
}

// TestNegTrain compares the embeddings after two steps with TensorFlow 1.15. Only one word has a
// frequency, so the drawn words are known.
func TestNegTrain(t *testing.T) {
	in, out := kernel.NewVariable(), kernel.NewVariable()
	first, second := make([]float32, 12), make([]float32, 12)
	for i := range first {
		first[i], second[i] = float32(i)/8-0.5, 0.25-float32(i)/16
	}
	for v, values := range map[*kernel.Variable][]float32{in: first, out: second} {
		m, err := tensor.FromSlice(tensor.Shape{4, 3}, values)
		if err != nil {
			t.Fatal(err)
		}
		v.Store(m)
	}
	node, err := kerneltest.NewEnv().Make("NegTrain", opdef.Attrs{"vocab_count": []int64{0, 0, 0, 7}, "num_negative_samples": int64(2)})
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range [][2][]float32{
		{
			{-0.344405174, -0.188035071, -0.0316649675, -0.187909245, -0.0213298164, 0.145249605, 0.244295061, 0.331895798, 0.419496536, 0.625, 0.75, 0.875},
			{0.25, 0.1875, 0.125, -0.0634765476, -0.094482407, -0.125488281, -0.156494141, -0.1875, -0.218505859, 0.109950848, -0.0525877029, -0.215126246},
		},
		{
			{-0.434459478, -0.196659088, 0.0411412865, -0.400271535, -0.128025785, 0.14421995, 0.314053714, 0.341791868, 0.369530022, 0.625, 0.75, 0.875},
			{0.25, 0.1875, 0.125, -0.147701085, -0.140466511, -0.133231968, -0.203432277, -0.192828, -0.182223737, 0.42970103, 0.132814407, -0.164072216},
		},
	} {
		_, err := node.RunValues(
			kernel.Value{Ref: in}, kernel.Value{Ref: out}, kernel.Value{Tensor: tensor.Vector[int32](0, 2, 1)},
			kernel.Value{Tensor: tensor.Vector[int32](1, 3, 2)}, kernel.Value{Tensor: tensor.Scalar[float32](0.5)},
		)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range []*kernel.Variable{in, out} {
			got := v.Load()
			expected, err := tensor.FromSlice(tensor.Shape{4, 3}, want[i])
			if err != nil {
				t.Fatal(err)
			}
			if diff := kerneltest.Diff(&got, &expected, 1e-6); diff != "" {
				t.Errorf("embeddings %d: %s", i, diff)
			}
			got.Release()
		}
	}
}

// Training with many negative samples ends with its step.
func TestNegTrainEndsWithStep(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in, out := kernel.NewVariable(), kernel.NewVariable()
	for _, v := range []*kernel.Variable{in, out} {
		m, err := tensor.Zeros(tensor.Float32, tensor.Shape{1, 1})
		if err != nil {
			t.Fatal(err)
		}
		v.Store(m)
	}
	env := kerneltest.NewEnv()
	env.Step.Context = ctx
	node, err := env.Make("NegTrain", opdef.Attrs{"vocab_count": []int64{1}, "num_negative_samples": int64(1) << 40})
	if err != nil {
		t.Fatal(err)
	}
	word := kernel.Value{Tensor: tensor.Vector[int32](0)}
	_, err = node.RunValues(kernel.Value{Ref: in}, kernel.Value{Ref: out}, word, word, kernel.Value{Tensor: tensor.Scalar[float32](0.5)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("in a cancelled step: %v", err)
	}
}
