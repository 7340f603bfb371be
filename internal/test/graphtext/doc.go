// Package graphtext implements a text form of graphs, and script tests in that form.
//
// A graph has one node per line:
//
//	x = Placeholder() dtype=float shape=[?,2]
//	w = Const() value=float[2,1]{1, 2} device=/job:ps
//	y = MatMul(x, w, ^init) transpose_a=true assigned=/job:ps/replica:0/task:0/device:CPU:0
//
// An input is "node", "node:1", "^node" for a control input, or "?" for one that is not connected.
// Nodes may be used before their line. The inputs are followed by attributes, the requested device
// and the assigned device. Attributes are omitted if they have their default, or if they follow
// from the types of the inputs or the value of a constant.
//
// The form of a value depends on its kind:
//
//	string  "text"                          type    float, int32_ref
//	int     -3                              shape   [2,?] or <unknown>
//	float   1.5, inf, nan                   tensor  float[2]{1, 2}, int32[]{7}, bool[1000]{true...}
//	bool    true                            func    @name or @name{T=float, n=3}
//	list    [1, 2]                          any     $name, inside the body of a function
//
// "float[1000]{0...}" repeats the last element. The shape in an attribute that the operation does
// not define (an attribute of the runtime, whose name starts with "_") is written shape[2,?].
//
// A function of the library is a block. The inputs of its nodes have the form of function bodies.
// All attributes are written, except for the type of a constant. The block precedes the nodes that
// call the function. The signature may be followed by flags, and the results may include control
// outputs:
//
//	func Double(x: T) -> (y: T) [T: type] stateful {
//	  two = Const() value=float[]{2}
//	  z = Mul(x, two:output:0) T=$T
//	  return y=z:z:0 ^done=z
//	}
//
// A line "versions producer=P min_consumer=M bad_consumers=[B]" sets the versions. "#" starts a
// comment line.
package graphtext
