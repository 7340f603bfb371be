package data

import (
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

func init() {
	for name, doc := range map[string]string{
		"AssertNextDataset": "Creates a dataset that fails unless the given transformations follow it.",
		"AssertPrevDataset": "Creates a dataset that fails unless the given transformations, with their attributes, precede it.",
	} {
		register(opdef.Def{
			Name: name, Doc: doc, In: []string{"input_dataset: variant", "transformations: string"}, Attrs: withSpec(), Shape: assertedShape,
		}, func(n *node, ctx *kernel.Context) (dataset, error) {
			s, err := n.stageOf(ctx)
			if err != nil {
				return nil, err
			}
			if ctx.Input(1).Rank() != 1 {
				return nil, status.InvalidArgumentf("transformations must be a vector")
			}
			return &passDataset{s}, nil
		})
	}
}

func assertedShape(c *opdef.ShapeContext) error {
	if _, err := opdef.WithRank(c.In[1], 1); err != nil {
		return err
	}
	return opdef.ScalarShape(c)
}

// checkAsserted checks the assertions about neighbouring transformations in t and its inputs. after
// holds the names of the transformations that follow t, the nearest last. What the calls for inputs
// append to it is used by them only, so they share its memory.
func checkAsserted(t *tensor.Tensor, after []string) error {
	m := nodeDatasetOf(t)
	if m == nil {
		return nil
	}
	var err error
	switch strings.TrimPrefix(m.op(), "Experimental") {
	case "AssertNextDataset":
		err = checkNext(tensor.Values[string](&m.inputs[1]), after)
	case "AssertPrevDataset":
		err = checkPrev(m, tensor.Values[string](&m.inputs[1]))
	}
	if err != nil {
		return err
	}
	name := transformation(m.op())
	joins := anyVersion(m.op(), joiners)
	for i := range m.inputs {
		next := after
		switch {
		case joins:
			next = append(after, fmt.Sprintf("%s[%d]", name, i))
		case name != "Options" && name != "Finalize": // TensorFlow has no iterators for these
			next = append(after, name)
		}
		if err := checkAsserted(&m.inputs[i], next); err != nil {
			return err
		}
	}
	return nil
}

// transformation returns the name of TensorFlow's iterator for an operation: "BatchV2" for
// BatchDatasetV2.
func transformation(op string) string {
	return strings.Replace(strings.TrimPrefix(op, "Experimental"), "Dataset", "", 1)
}

// isVersion reports whether op is name with or without a version number: "BatchDatasetV2" is a
// version of BatchDataset.
func isVersion(op, name string) bool {
	rest, ok := strings.CutPrefix(op, name)
	return ok && (rest == "" || rest[0] == 'V' && strings.Trim(rest[1:], "0123456789") == "")
}

func checkNext(want, after []string) error {
	if len(want) > len(after) {
		return status.InvalidArgumentf("Asserted next %d transformations but encountered only %d.", len(want), len(after))
	}
	for i, name := range want {
		if got := after[len(after)-1-i]; !isVersion(got, name) {
			return status.InvalidArgumentf("Asserted transformation matching %s at offset %d but encountered %s transformation instead.", name, i, got)
		}
	}
	return nil
}

func checkPrev(m *nodeDataset, want []string) error {
	for i, text := range want {
		if m = m.lastInput(); m == nil {
			return status.InvalidArgumentf("Asserted previous %d transformations but encountered only %d.", len(want), i)
		}
		if err := m.matches(text); err != nil {
			return status.InvalidArgumentf("Failure checking transformations at offset %d: %v", i, err)
		}
	}
	return nil
}

// lastInput returns the last input of m that is a dataset, or nil if there is none.
func (m *nodeDataset) lastInput() *nodeDataset {
	for i := range slices.Backward(m.inputs) {
		if in := nodeDatasetOf(&m.inputs[i]); in != nil {
			return in
		}
	}
	return nil
}

// matches compares a dataset with the text of a NameAttrList.
func (m *nodeDataset) matches(text string) error {
	want := &pb.NameAttrList{}
	if prototext.Unmarshal([]byte(text), want) != nil {
		return status.InvalidArgumentf("Couldn't parse transformation '%s'.", text)
	}
	if !isVersion(m.op(), want.GetName()) {
		return status.InvalidArgumentf("Asserted transformation matching '%s', but found '%s'.", want.GetName(), m.op())
	}
	for name, v := range want.GetAttr() {
		have, ok := m.n.Attrs[name]
		if !ok {
			return status.InvalidArgumentf("Asserted attribute '%s' having a value of '%v', but found no such attribute defined.", name, v)
		}
		p, err := pbconv.AttrToProto(have)
		if err != nil {
			return err
		}
		if !proto.Equal(p, v) {
			return status.InvalidArgumentf("Asserted attribute '%s' having a value of '%v', but found value of '%v'.", name, v, p)
		}
	}
	return nil
}
