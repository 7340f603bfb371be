package main

import (
	"fmt"

	"github.com/weft-ml/weft/interop/restclient/api"
)

// Sizes of the network and of a batch.
const (
	pixels  = 784
	classes = 10
	batch   = 100
	rate    = 0.5
)

// node returns a node with inputs.
func node(name, op string, inputs ...string) api.NodeDef {
	return api.NodeDef{Name: &name, Op: &op, Input: &inputs, Attr: &map[string]api.AttrValue{}}
}

// with returns a node with an attribute that is a type.
func with(n api.NodeDef, name string, t api.AttrValueType) api.NodeDef {
	(*n.Attr)[name] = api.AttrValue{Type: &t}
	return n
}

// float returns a node with T = float32.
func float(n api.NodeDef) api.NodeDef { return with(n, "T", api.AttrValueTypeDTFLOAT) }

// shape returns a shape with the given sizes.
func shape(sizes ...int) *api.TensorShapeProto {
	dims := []api.TensorShapeProtoDim{}
	for _, n := range sizes {
		text := fmt.Sprint(n)
		dims = append(dims, api.TensorShapeProtoDim{Size: &text})
	}
	return &api.TensorShapeProto{Dim: &dims}
}

// ints returns a constant vector of int32, or a scalar.
func ints(name string, vals ...int32) api.NodeDef {
	n := with(node(name, "Const"), "dtype", api.AttrValueTypeDTINT32)
	d := api.TensorProtoDtypeDTINT32
	(*n.Attr)["value"] = api.AttrValue{Tensor: &api.TensorProto{Dtype: &d, TensorShape: shape(len(vals)), IntVal: &vals}}
	return n
}

// number returns a constant float32.
func number(name string, v float32) api.NodeDef {
	n := with(node(name, "Const"), "dtype", api.AttrValueTypeDTFLOAT)
	d := api.TensorProtoDtypeDTFLOAT
	(*n.Attr)["value"] = api.AttrValue{Tensor: &api.TensorProto{Dtype: &d, TensorShape: &api.TensorShapeProto{}, FloatVal: &[]float32{v}}}
	return n
}

// variable returns a variable of zeros and its initializer.
func variable(name string, dims ...int32) []api.NodeDef {
	sizes := make([]int, len(dims))
	for i, d := range dims {
		sizes[i] = int(d)
	}
	v := with(node(name, "VariableV2"), "dtype", api.AttrValueTypeDTFLOAT)
	(*v.Attr)["shape"] = api.AttrValue{Shape: shape(sizes...)}
	return []api.NodeDef{
		v, ints(name+"/dims", dims...), number(name+"/zero", 0), float(node(name+"/zeros", "Fill", name+"/dims", name+"/zero")),
		float(node(name+"/init", "Assign", name, name+"/zeros")),
	}
}

// placeholder returns a placeholder of float32.
func placeholder(name string) api.NodeDef {
	unknown := true
	n := with(node(name, "Placeholder"), "dtype", api.AttrValueTypeDTFLOAT)
	(*n.Attr)["shape"] = api.AttrValue{Shape: &api.TensorShapeProto{UnknownRank: &unknown}}
	return n
}

// graph returns softmax regression with its gradients: y = softmax(x·W + b), trained by gradient
// descent on the cross entropy.
func graph() *api.GraphDef {
	transposed := true
	gradW := float(node("grad_w", "MatMul", "x", "xent:1"))
	(*gradW.Attr)["transpose_a"] = api.AttrValue{B: &transposed}
	right := with(node("right", "Equal", "guess", "truth"), "T", api.AttrValueTypeDTINT64)
	hits := with(with(node("hits", "Cast", "right"), "SrcT", api.AttrValueTypeDTBOOL), "DstT", api.AttrValueTypeDTFLOAT)
	nodes := []api.NodeDef{placeholder("x"), placeholder("labels"), ints("rows", 0), number("step", rate/batch)}
	nodes = append(nodes, variable("W", pixels, classes)...)
	nodes = append(nodes, variable("b", classes)...)
	last := with(node("last", "Const"), "dtype", api.AttrValueTypeDTINT32)
	d := api.TensorProtoDtypeDTINT32
	(*last.Attr)["value"] = api.AttrValue{Tensor: &api.TensorProto{Dtype: &d, TensorShape: &api.TensorShapeProto{}, IntVal: &[]int32{1}}}
	nodes = append(nodes,
		node("init", "NoOp", "^W/init", "^b/init"),
		float(node("product", "MatMul", "x", "W")),
		float(node("logits", "Add", "product", "b")),
		float(node("xent", "SoftmaxCrossEntropyWithLogits", "logits", "labels")),
		float(node("loss", "Mean", "xent", "rows")),
		gradW,
		float(node("grad_b", "Sum", "xent:1", "rows")),
		float(node("train_w", "ApplyGradientDescent", "W", "step", "grad_w")),
		float(node("train_b", "ApplyGradientDescent", "b", "step", "grad_b")),
		node("train", "NoOp", "^train_w", "^train_b"),
		last,
		float(node("guess", "ArgMax", "logits", "last")),
		float(node("truth", "ArgMax", "labels", "last")),
		right, hits,
		float(node("accuracy", "Mean", "hits", "rows")),
	)
	return &api.GraphDef{Node: &nodes}
}
