package data

import (
	"maps"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/tensor"
)

// optionsOf returns serialized options that enable or disable parallel maps.
func optionsOf(parallel bool) string {
	return option(optimizationOptions, mapParallelization, parallel)
}

// option returns a serialized message with a nested message that has a bool field.
func option(field, of protowire.Number, v bool) string {
	inner := protowire.AppendVarint(protowire.AppendTag(nil, of, protowire.VarintType), protowire.EncodeBool(v))
	return string(protowire.AppendBytes(protowire.AppendTag(nil, field, protowire.BytesType), inner))
}

func TestMapParallelizationOption(t *testing.T) {
	for name, c := range map[string]struct {
		op      string // operation of the function
		options string
		force   bool // value of force_synchronous
		want    string
	}{
		"enabled":           {"Mul", optionsOf(true), false, "ParallelMap"},
		"unset":             {"Mul", "", false, "Map"},
		"disabled":          {"Mul", optionsOf(false), false, "Map"},
		"last value counts": {"Mul", optionsOf(true) + optionsOf(false), false, "Map"},
		"autotune disabled": {"Mul", optionsOf(true) + option(autotuneOptions, autotuneEnabled, false), false, "Map"},
		"stateful":          {"RandomUniformInt", optionsOf(true), false, "Map"},
		"force synchronous": {"Mul", optionsOf(true), true, "Map"},
	} {
		for _, assert := range []string{"Map", "ParallelMap"} {
			p := &program{}
			d := p.add("asserted", "AssertNextDataset", numbersSpec(nil), p.count("numbers", 6), p.constant("transformations", tensor.Vector(assert, "Batch")))
			d = p.add("map", "MapDataset", numbersSpec(opdef.Attrs{
				"f": p.function("f", c.op, 100), "Targuments": []tensor.DType{}, "force_synchronous": c.force,
			}), d)
			d = p.add("options", "OptionsDataset", numbersSpec(opdef.Attrs{"serialized_options": c.options}), d)
			batches := opdef.Attrs{"output_types": []tensor.DType{tensor.Int64}, "output_shapes": []tensor.PartialShape{tensor.MakePartial(-1)}}
			d = p.add("batch", "BatchDataset", maps.Clone(batches), d, p.constant("size", num(4)))
			it := maps.Clone(batches)
			it["container"], it["shared_name"] = "", "it"
			p.add("iterator", "IteratorV2", it)
			p.add("make", "MakeIterator", nil, d, "iterator")
			got, err := p.run(t, p.add("next", "IteratorGetNext", batches, "iterator", "^make"), tensor.Int64)
			switch {
			case assert != c.want:
				if err == nil || !strings.Contains(err.Error(), "but encountered "+c.want) {
					t.Errorf("%s: assertion %s succeeds: %v", name, assert, err)
				}
			case err != nil:
				t.Errorf("%s: %v", name, err)
			case c.op == "Mul" && tensor.Values[int64](&got)[3] != 300:
				t.Errorf("%s: elements are %v", name, tensor.Values[int64](&got))
			}
		}
	}
}
