package servable

import (
	"context"
	"fmt"
	"slices"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// Names of the inputs and outputs of signatures for examples.
const (
	inputsName  = "inputs"
	classesName = "classes"
	scoresName  = "scores"
	outputsName = "outputs"
)

// examplesTensor returns serialized examples. The bytes of the context come before those of each
// example, whose features therefore win.
func examplesTensor(in *servingpb.Input) (tensor.Tensor, error) {
	list, context := in.GetExampleList().GetExamples(), []byte(nil)
	if with := in.GetExampleListWithContext(); with != nil {
		list = with.GetExamples()
		var err error
		if context, err = proto.Marshal(with.GetContext()); err != nil {
			return tensor.Tensor{}, status.InvalidArgumentf("%w", err)
		}
	}
	if len(list) == 0 {
		return tensor.Tensor{}, status.InvalidArgumentf("Input is empty.")
	}
	// The context is in each example, so a short list of them could take all memory.
	const copies, header = 2, 16
	var meter membudget.Meter
	vals := make([]string, len(list))
	for i, e := range list {
		if !meter.Take(header + copies*(len(context)+proto.Size(e))) {
			return tensor.Tensor{}, status.ResourceExhaustedf("there is no memory for %d examples (--memory-limit)", len(list))
		}
		b, err := proto.MarshalOptions{}.MarshalAppend(slices.Clip(context), e)
		if err != nil {
			return tensor.Tensor{}, status.InvalidArgumentf("%w", err)
		}
		vals[i] = string(b)
	}
	return tensor.Vector(vals...), nil
}

// Classify runs a signature with classes or scores on examples.
func (s *Servable) Classify(ctx context.Context, name string, in *servingpb.Input) (*servingpb.ClassificationResult, error) {
	sig, err := s.exampleSignature(name)
	if err != nil {
		return nil, err
	}
	def := sig.Definition
	if n := len(def.GetOutputs()); n != 1 && n != 2 {
		return nil, status.InvalidArgumentf("Expected one or two output Tensors, found %d", n)
	}
	if sig.Input(inputsName) == nil {
		return nil, status.InvalidArgumentf("No classification inputs found in SignatureDef: %s", text(def))
	}
	var fetch []string
	for _, output := range []string{classesName, scoresName} {
		if sig.Output(output) != nil {
			fetch = append(fetch, output)
		}
	}
	if len(fetch) == 0 {
		return nil, status.InvalidArgumentf("Expected classification signature outputs to contain at least one of \"classes\" or \"scores\". Signature was: %s", text(def))
	}
	out, n, err := sig.runExamples(ctx, in, fetch)
	if err != nil {
		return nil, err
	}
	defer Release(out)
	return classification(out, n)
}

// classification returns the classes of n examples.
func classification(out map[string]tensor.Tensor, n int) (*servingpb.ClassificationResult, error) {
	classes, labelled := out[classesName]
	scores, scored := out[scoresName]
	width := -1
	for _, of := range []struct {
		t           tensor.Tensor
		given       bool
		dtype       tensor.DType
		plural, typ string
	}{{classes, labelled, tensor.String, classesName, "DT_STRING"}, {scores, scored, tensor.Float32, scoresName, "DT_FLOAT"}} {
		if !of.given {
			continue
		}
		shape := of.t.Shape()
		switch {
		case len(shape) != 2:
			return nil, status.InvalidArgumentf("Expected Tensor shape: [batch_size num_classes] but got %s", ShapeText(shape))
		case of.t.DType() != of.dtype:
			return nil, status.InvalidArgumentf("Expected %s Tensor of %s. Got: %s", of.plural, of.typ, of.t.DType().Name())
		case int(shape[0]) != n:
			return nil, status.InvalidArgumentf("Expected %s output batch size of %d. Got: %d", of.plural, n, shape[0])
		case width >= 0 && int(shape[1]) != width:
			return nil, status.InvalidArgumentf("Tensors class and score should match in num_classes: %d vs. %d", width, shape[1])
		}
		width = int(shape[1])
	}
	size := int64(n) * int64(1+width) * messageSize
	if labelled {
		for _, label := range tensor.Values[string](&classes) {
			size += int64(len(label))
		}
	}
	if err := takeResult(n, size); err != nil {
		return nil, err
	}
	result := &servingpb.ClassificationResult{Classifications: make([]*servingpb.Classifications, n)}
	for i := range n {
		row := &servingpb.Classifications{Classes: make([]*servingpb.Class, width)}
		for k := range width {
			c := &servingpb.Class{}
			if labelled {
				c.Label = []byte(tensor.Values[string](&classes)[i*width+k])
			}
			if scored {
				c.Score = tensor.Values[float32](&scores)[i*width+k]
			}
			row.Classes[k] = c
		}
		result.Classifications[i] = row
	}
	return result, nil
}

// messageSize is the memory of the message of a class, of the classes of an example or of its
// value, in bytes, with its place in a list.
const messageSize = 120

// takeResult asks for the memory of the results of n examples. Models give each example the same
// labels, whose copies take more than the tensor.
func takeResult(n int, bytes int64) error {
	if !membudget.Take(bytes) {
		return status.ResourceExhaustedf("there is no memory for the results of %d examples (--memory-limit)", n)
	}
	return nil
}

// Regress runs a signature with one value for each example.
func (s *Servable) Regress(ctx context.Context, name string, in *servingpb.Input) (*servingpb.RegressionResult, error) {
	sig, err := s.exampleSignature(name)
	if err != nil {
		return nil, err
	}
	def := sig.Definition
	switch {
	case len(def.GetOutputs()) != 1:
		return nil, status.InvalidArgumentf("Expected one output Tensor.")
	case sig.Input(inputsName) == nil:
		return nil, status.InvalidArgumentf("No regression inputs found in SignatureDef: %s", text(def))
	case sig.Output(outputsName) == nil:
		return nil, status.InvalidArgumentf("No regression outputs found in SignatureDef: %s", text(def))
	}
	out, n, err := sig.runExamples(ctx, in, []string{outputsName})
	if err != nil {
		return nil, err
	}
	defer Release(out)
	t := out[outputsName]
	shape := t.Shape()
	switch {
	case len(shape) != 1 && (len(shape) != 2 || shape[1] != 1):
		return nil, status.InvalidArgumentf("Expected output Tensor shape to be either [batch_size] or [batch_size, 1] but got %s", ShapeText(shape))
	case int(shape[0]) != n:
		return nil, status.InvalidArgumentf("Input batch size did not match output batch size: %d vs. %d", n, shape[0])
	case t.DType() != tensor.Float32:
		return nil, status.InvalidArgumentf("Expected output Tensor of DT_FLOAT.  Got: %s", t.DType().Name())
	}
	if err := takeResult(n, int64(n)*messageSize); err != nil {
		return nil, err
	}
	result := &servingpb.RegressionResult{Regressions: make([]*servingpb.Regression, n)}
	for i, v := range tensor.Values[float32](&t) {
		result.Regressions[i] = &servingpb.Regression{Value: v}
	}
	return result, nil
}

// exampleSignature returns a signature with one input.
func (s *Servable) exampleSignature(name string) (*Signature, error) {
	sig, ok := s.Signature(name)
	if !ok {
		if name == "" {
			name = savedmodel.DefaultSignature
		}
		return nil, status.InvalidArgumentf("No signature was found with the name: %s", name)
	}
	if len(sig.Definition.GetInputs()) != 1 {
		return nil, status.InvalidArgumentf("Expected one input Tensor.")
	}
	return sig, nil
}

// runExamples runs the signature on n examples.
func (s *Signature) runExamples(ctx context.Context, in *servingpb.Input, fetch []string) (out map[string]tensor.Tensor, n int, err error) {
	t, err := examplesTensor(in)
	if err != nil {
		return nil, 0, err
	}
	defer t.Release()
	out, err = s.Run(ctx, map[string]tensor.Tensor{inputsName: t}, fetch)
	return out, t.NumElements(), err
}

// text returns a signature as text of one line.
func text(def *pb.SignatureDef) string { return prototext.MarshalOptions{}.Format(def) }

// ShapeText returns a shape as in "[2,3]".
func ShapeText(s tensor.Shape) string {
	b := []byte{'['}
	for i, d := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Append(b, d)
	}
	return string(append(b, ']'))
}
