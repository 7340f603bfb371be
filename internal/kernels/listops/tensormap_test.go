package listops

import (
	"testing"

	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// mapOf returns a map from integers to strings in the given order.
func mapOf(t *testing.T, values ...string) *Map {
	t.Helper()
	m := &Map{}
	for i, s := range values {
		key, value := tensor.Scalar(int64(i)), tensor.Scalar(s)
		var err error
		if m, err = m.with(&key, &value); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func TestMapTravels(t *testing.T) {
	m := mapOf(t, "a", "b", "c")
	v, err := tensor.VariantValue{Value: m}.Encode()
	if err != nil || v.TypeName != "tensorflow::TensorMap" || len(v.Tensors) != 6 {
		t.Fatalf("encoded as %+v, %v", v, err)
	}
	decoded, err := v.Decode()
	if err != nil {
		t.Fatal(err)
	}
	got, ok := decoded.(*Map)
	if !ok || got.items.n != 3 {
		t.Fatalf("decoded as %+v", decoded)
	}
	for i, p := range got.pairs() {
		if want := string(rune('a' + i)); tensor.Value[int64](&p.key) != int64(i) || tensor.Value[string](&p.value) != want {
			t.Errorf("pair %d is %v: %v", i, p.key, p.value)
		}
	}
	odd := tensor.EncodedVariant{TypeName: v.TypeName, Tensors: v.Tensors[:5]}
	if _, err := odd.Decode(); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("a key without a value: %v", err)
	}
}

// TestMapVersions checks that a map is not affected by changes to maps derived from it.
func TestMapVersions(t *testing.T) {
	m := mapOf(t, "a", "b")
	key, value := tensor.Scalar(int64(0)), tensor.Scalar("z")
	changed, err := m.with(&key, &value)
	if err != nil {
		t.Fatal(err)
	}
	less, err := changed.without(&key)
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range []*Map{m, changed, less} {
		p, err := v.get(&key)
		switch want := []string{"a", "z", ""}[i]; {
		case err != nil:
			t.Error(err)
		case want == "" && p != nil, want != "" && tensor.Value[string](&p.value) != want:
			t.Errorf("version %d has %+v", i, p)
		}
	}
}

func TestMapRefusesHandlesAsKeys(t *testing.T) {
	for _, key := range []tensor.Tensor{tensor.Scalar(&tensor.Handle{}), tensor.Scalar(tensor.VariantValue{})} {
		if _, err := (&Map{}).get(&key); status.CodeOf(err) != status.InvalidArgument {
			t.Errorf("%v: %v", key.DType(), err)
		}
	}
}
