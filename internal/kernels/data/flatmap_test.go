package data

import (
	"testing"

	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// TestZipEndsItsInputs zips two caches. At the end both are complete.
func TestZipEndsItsInputs(t *testing.T) {
	b := newBench(t)
	calls := 0
	cached := b.make("CacheDataset", b.count(0, 3), tensor.Scalar(""))
	zipped := b.make("ZipDataset", b.count(0, 3), cached)
	attrs := opdef.Attrs{"output_types": []tensor.DType{tensor.Int64, tensor.Int64}, "output_shapes": make([]tensor.PartialShape, 2)}
	it, err := b.run("it", "AnonymousIteratorV3", attrs)
	if err == nil {
		_, err = b.run("make", "MakeIterator", nil, zipped, it[0])
	}
	for ; err == nil; calls++ {
		_, err = b.run("next", "IteratorGetNext", attrs, it[0])
	}
	if calls != 4 || status.CodeOf(err) != status.OutOfRange {
		t.Fatalf("%d calls, %v", calls, err)
	}
	d, err := datasetOf(&cached)
	if err != nil {
		t.Fatal(err)
	}
	if all, full := d.(*cacheDataset).get(); !full || len(all) != 3 {
		t.Errorf("the cache has %d elements, complete %t", len(all), full)
	}
}

func TestFlatMapCardinality(t *testing.T) {
	const low, moderate = "\x08\x01", "\x08\x02" // serialized CardinalityOptions
	for options, want := range map[string]int64{low: unknown, moderate: 10} {
		p := &program{}
		f := p.identity("f", tensor.Int64)
		body := &p.Library[len(p.Library)-1] // range(x)
		body.Signature.Outputs[0].DType = tensor.Variant
		body.Nodes = nil
		for name, v := range map[string]int64{"zero": 0, "one": 1} {
			body.Nodes = append(body.Nodes, constantNode(name, v))
		}
		body.Nodes = append(body.Nodes, rangeNode("z", "zero:output:0", "x", "one:output:0"))
		body.Ret["y"] = "z:handle:0"
		d := p.add("d", "FlatMapDataset", numbersSpec(opdef.Attrs{"f": f, "Targuments": []tensor.DType{}}), p.count("r", 5))
		got, err := p.run(t, p.add("size", "DatasetCardinality", opdef.Attrs{"cardinality_options": options}, d), tensor.Int64)
		if err != nil || tensor.Value[int64](&got) != want {
			t.Errorf("%q: %v, %v; want %d", options, got, err, want)
		}
	}
}
