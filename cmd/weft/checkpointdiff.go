package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/tensor"
)

// difference is a tensor in the output of weft checkpoint diff.
type difference struct {
	Name     string `json:"name"`
	What     string `json:"what"` // "only in A", "only in B", "type", "shape", "values"
	A        string `json:"a,omitempty"`
	B        string `json:"b,omitempty"`
	Elements int    `json:"elements,omitempty"` // number of elements that differ
	Largest  any    `json:"largest,omitempty"`  // largest absolute difference of numbers
}

func newCheckpointDiff() *cobra.Command {
	cmd := &cobra.Command{
		Use: "diff A B", Short: "Compare two checkpoints",
		Long: "Compare the tensors of two checkpoints. The exit status is 1 if they differ.",
		Args: exactly("A", "B"),
	}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		a, err := openCheckpoint(args[0])
		if err != nil {
			return err
		}
		defer a.Close()
		b, err := openCheckpoint(args[1])
		if err != nil {
			return err
		}
		defer b.Close()
		diffs, err := compare(a, b)
		if err != nil {
			return err
		}
		err = show(cmd, *output, diffs, func(w io.Writer) {
			for _, d := range diffs {
				fmt.Fprintln(w, d)
			}
		})
		if err == nil && len(diffs) > 0 {
			err = errors.New("the checkpoints differ")
		}
		return err
	}
	return cmd
}

func (d difference) String() string {
	switch d.What {
	case "type", "shape":
		return fmt.Sprintf("%s: %s %s, %s", d.Name, d.What, d.A, d.B)
	case "values":
		return fmt.Sprintf("%s: %d elements differ, by up to %v", d.Name, d.Elements, d.Largest)
	}
	return d.Name + ": " + d.What
}

// compare returns the differences, in order of the names.
func compare(a, b *checkpoint.Reader) ([]difference, error) {
	diffs := []difference{}
	left, right := a.Tensors(), b.Tensors()
	for len(left) > 0 || len(right) > 0 {
		switch {
		case len(right) == 0 || len(left) > 0 && byName(left[0], right[0]) < 0:
			diffs = append(diffs, difference{Name: left[0].Name, What: "only in A"})
			left = left[1:]
		case len(left) == 0 || byName(left[0], right[0]) > 0:
			diffs = append(diffs, difference{Name: right[0].Name, What: "only in B"})
			right = right[1:]
		default:
			d, err := compareTensors(a, b, left[0], right[0])
			if err != nil {
				return nil, err
			}
			if d.What != "" {
				diffs = append(diffs, d)
			}
			left, right = left[1:], right[1:]
		}
	}
	return diffs, nil
}

func compareTensors(a, b *checkpoint.Reader, x, y checkpoint.Info) (difference, error) {
	d := difference{Name: x.Name}
	switch {
	case x.DType != y.DType:
		d.What, d.A, d.B = "type", x.DType.Name(), y.DType.Name()
		return d, nil
	case !x.Shape.Equal(y.Shape):
		d.What, d.A, d.B = "shape", x.Shape.String(), y.Shape.String()
		return d, nil
	}
	v, err := a.Read(x.Name)
	if err != nil {
		return d, err
	}
	defer v.Release()
	w, err := b.Read(x.Name)
	if err != nil {
		return d, err
	}
	defer w.Release()
	if v.DType() != tensor.String && bytes.Equal(v.Bytes(), w.Bytes()) {
		return d, nil
	}
	var largest float64
	d.Elements, largest = distance(reflect.ValueOf(v.Go()), reflect.ValueOf(w.Go()))
	if d.Elements > 0 {
		d.What, d.Largest = "values", jsonFloat(largest, 64)
	}
	return d, nil
}

// distance returns the number of elements that differ and the largest absolute difference of
// numbers.
func distance(a, b reflect.Value) (count int, largest float64) {
	if a.Kind() == reflect.Slice {
		for i := range a.Len() {
			n, d := distance(a.Index(i), b.Index(i))
			count, largest = count+n, max(largest, d)
		}
		return count, largest
	}
	if reflect.DeepEqual(a.Interface(), b.Interface()) {
		return 0, 0
	}
	x, y := number(a), number(b)
	if math.IsNaN(x) && math.IsNaN(y) {
		return 0, 0
	}
	return 1, math.Abs(x - y)
}

// number converts an element to a number; 0 if it is not one.
func number(v reflect.Value) float64 {
	switch x := v.Interface().(type) {
	case tensor.Float16Elem:
		return float64(x.Float32())
	case tensor.BFloat16Elem:
		return float64(x.Float32())
	}
	switch {
	case v.CanFloat():
		return v.Float()
	case v.CanInt():
		return float64(v.Int())
	case v.CanUint():
		return float64(v.Uint())
	}
	return 0
}
