package peer

import (
	"maps"
	"slices"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/tensor"
)

// Upgrade changes the nodes that the optimizer of an old master has made, and whose operation has
// another signature in current releases. Masters do not send them to workers of other releases, but
// they take this program for a worker of their own.
func Upgrade(def *graph.Def) {
	for i := range def.Nodes {
		n := &def.Nodes[i]
		if n.Op != "_FusedConv2D" || n.Attrs["TArgs"] != nil {
			continue
		}
		// before 2.5, all arguments have the type of the input
		dtype, _ := n.Attrs["T"].(tensor.DType)
		args, _ := n.Attrs["num_args"].(int64)
		n.Attrs = maps.Clone(n.Attrs)
		n.Attrs["TArgs"] = slices.Repeat([]tensor.DType{dtype}, int(min(max(args, 0), maxFusedArgs)))
	}
}

// maxFusedArgs bounds the arguments of a fused operation. Each comes from one node that was fused.
const maxFusedArgs = 16
