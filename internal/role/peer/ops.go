package peer

import "github.com/weft-ml/weft/internal/opkit/ophistory"

// newestOps is the index in [ophistory.Releases] of the release whose operations a range is taken
// to have: 0.12, 1.0, 1.4, 1.8, 1.12 and 1.15. Ranges without an entry have all operations, as far
// as is known.
var newestOps = map[Release]int{TF012: 0, TF10: 1, TF14: 2, TF15: 3, TF19: 4, TF113: 5}

// HasOp reports whether a release may have an operation. A range that goes beyond those with known
// histories may have any.
func (r Release) HasOp(op string) bool {
	newest, old := newestOps[r]
	if !old || r == TF113 {
		return true // without a look at the table, which is parsed at its first use
	}
	since, known := ophistory.OpSince(op)
	return !known || since <= newest
}

// HasAttr reports whether the definition of an operation has an attribute.
func (r Release) HasAttr(op, attr string) bool {
	newest, old := newestOps[r]
	return !old || ophistory.AttrSince(op, attr) <= newest
}
