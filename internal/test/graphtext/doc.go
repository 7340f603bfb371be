// Package graphtext is the text form of graphs, and the script tests that are written in it.
//
// A graph is one node a line:
//
//	x = Placeholder() dtype=float shape=[?,2]
//	w = Const() value=float[2,1]{1, 2} device=/job:ps
//	y = MatMul(x, w, ^init) transpose_a=true assigned=/job:ps/replica:0/task:0/device:CPU:0
//
// An input is "node", "node:1", "^node" for a control input, or "?" for one that is not connected;
// nodes may be used before their line. After the inputs come attributes, the device that the node
// requests and the one it is assigned to. Attributes that have their default, or that the types of
// the inputs or a constant's value imply, are left out.
//
// Values are written by kind:
//
//	string  "text"                          type    float, int32_ref
//	int     -3                              shape   [2,?] or <unknown>
//	float   1.5, inf, nan                   tensor  float[2]{1, 2}, int32[]{7}, bool[1000]{true...}
//	bool    true                            func    @name or @name{T=float, n=3}
//	list    [1, 2]                          any     $name, inside the body of a function
//
// "float[1000]{0...}" repeats the last element. A shape that is the value of an attribute which the
// operation does not have (those of the runtime, whose names begin with "_") is written shape[2,?].
//
// A function of the library is a block whose nodes have inputs as function bodies have them, and
// whose attributes are all written, except for the type of a constant. It stands before the nodes
// that call it. After the signature may come flags, and among the results control outputs:
//
//	func Double(x: T) -> (y: T) [T: type] stateful {
//	  two = Const() value=float[]{2}
//	  z = Mul(x, two:output:0) T=$T
//	  return y=z:z:0 ^done=z
//	}
//
// A line "versions producer=P min_consumer=M bad_consumers=[B]" gives the versions. "#" begins a
// comment line.
package graphtext
