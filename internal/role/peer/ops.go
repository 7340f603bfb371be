package peer

import "github.com/weft-ml/weft/internal/opkit/ophistory"

// newestOps is the index in [ophistory.Releases] of the newest release whose operations every
// release of a range has. Ranges without an entry have all operations, as far as is known.
var newestOps = map[Release]int{TF012: 0, TF10: 1, TF14: 2, TF15: 2, TF18: 3, TF112: 4, TF115: 5}

// HasOp reports whether a release may have an operation. A range that goes beyond those with known
// histories may have any.
func (r Release) HasOp(op string) bool {
	newest, old := newestOps[r]
	since, known := ophistory.OpSince(op)
	return !old || r == TF115 || !known || since <= newest
}

// HasAttr reports whether the definition of an operation has an attribute in every release of a
// range.
func (r Release) HasAttr(op, attr string) bool {
	newest, old := newestOps[r]
	return !old || ophistory.AttrSince(op, attr) <= newest
}
