package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/tensor"
)

// numbers lists the types whose values are written from small numbers.
var numbers = []tensor.DType{
	tensor.Float16, tensor.BFloat16, tensor.Float32, tensor.Float64, tensor.Int8, tensor.Int16, tensor.Int32, tensor.Int64,
	tensor.Uint8, tensor.Uint16, tensor.Uint32, tensor.Uint64, tensor.Bool, tensor.Complex64, tensor.Complex128,
}

// sample returns two values of a type: 1 and 0.
func sample(dtype tensor.DType) (tensor.Tensor, error) {
	if dtype == tensor.Bool {
		return tensor.Vector(true, false), nil
	}
	t, err := tensor.Zeros(dtype, tensor.Shape{2})
	if err != nil {
		return t, err
	}
	one, err := tensor.FromFloat(dtype, 1)
	if err != nil {
		return t, err
	}
	copy(t.Bytes(), one.Bytes())
	return t, nil
}

// adder is a checkpoint writer of either format.
type adder interface {
	Add(name string, t *tensor.Tensor) error
	AddSlice(name string, full tensor.Shape, s checkpoint.Slice, t *tensor.Tensor) error
	Close() error
}

func writeCheckpoints(_ context.Context, dir string, _ contents) error {
	dir = filepath.Join(dir, "checkpoints")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	v2, err := checkpoint.Create(filepath.Join(dir, "v2"))
	if err != nil {
		return err
	}
	defer v2.Abort()
	if err := fill(v2, numbers); err != nil {
		return err
	}
	if err := fill(checkpoint.CreateV1(filepath.Join(dir, "v1")), []tensor.DType{tensor.Float32, tensor.Int64, tensor.Bool}); err != nil {
		return err
	}
	state := &checkpoint.State{Latest: filepath.Join(dir, "v2"), All: []string{filepath.Join(dir, "v2")}}
	return state.Write(dir, checkpoint.StateFile, true)
}

// fill writes a tensor of each type, strings, and a tensor of values 0 to 5 in two slices.
func fill(w adder, dtypes []tensor.DType) error {
	for _, dtype := range dtypes {
		t, err := sample(dtype)
		if err != nil {
			return err
		}
		if err := w.Add(dtype.Name(), &t); err != nil {
			return fmt.Errorf("%s: %w", dtype.Name(), err)
		}
	}
	texts := tensor.Vector("a", "", "b\x00\xff")
	if err := w.Add("texts", &texts); err != nil {
		return err
	}
	for _, lo := range []int64{0, 2} {
		part := tensor.Vector(float32(lo), float32(lo+1))
		if lo == 2 {
			part = tensor.Vector[float32](2, 3, 4, 5)
		}
		s := checkpoint.Slice{{Start: lo, Length: int64(part.NumElements())}}
		if err := w.AddSlice("parts", tensor.Shape{6}, s, &part); err != nil {
			return err
		}
	}
	return w.Close()
}

func readCheckpoints(_ context.Context, dir string, held contents) error {
	dir = filepath.Join(dir, "checkpoints")
	latest, err := checkpoint.Latest(dir)
	if err != nil {
		return err
	}
	if latest != filepath.Join(dir, "v2") {
		return fmt.Errorf("the latest checkpoint is %q", latest)
	}
	for _, name := range []string{"v2", "v1"} {
		r, err := checkpoint.Open(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		defer r.Close()
		held[name] = map[string]any{}
		for _, info := range r.Tensors() {
			t, err := r.Read(info.Name)
			if err != nil {
				return err
			}
			held[name][info.Name] = t.Summary(100)
		}
	}
	return nil
}
