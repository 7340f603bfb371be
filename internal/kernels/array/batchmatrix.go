package array

import (
	"github.com/weft-ml/weft/internal/opkit/typeset"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
)

// The operations of this file are deprecated: the names without "Batch" take stacks of matrices
// too. Graphs of TensorFlow 0.11 and earlier contain them.
func init() {
	kernel.Register(kernel.Op{
		Def: opdef.Def{
			Name: "BatchMatrixBandPart", Doc: "Copies the band of each matrix and sets the other elements to zero. Use MatrixBandPart.",
			In: []string{"input: T", "num_lower: int64", "num_upper: int64"}, Out: []string{"band: T"}, Attrs: []string{"T: type"},
			Shape: opdef.SameShape,
		},
		Kernels: kernel.ForTypes("T", kernel.Stateless(bandPart), typeset.Plain...),
	})
	kernel.RegisterNew(opdef.Def{
		Name: "BatchMatrixDiag", Doc: "Returns square matrices with the given diagonals. Use MatrixDiag.",
		In: []string{"diagonal: T"}, Out: []string{"output: T"}, Attrs: []string{"T: type"}, Shape: matrixDiagV1Shape,
	}, newMatrixDiag)
	kernel.RegisterNew(opdef.Def{
		Name: "BatchMatrixDiagPart", Doc: "Returns the main diagonals of matrices. Use MatrixDiagPart.",
		In: []string{"input: T"}, Out: []string{"diagonal: T"}, Attrs: []string{"T: type"}, Shape: matrixDiagPartV1Shape,
	}, newMatrixDiagPart)
	kernel.RegisterNew(opdef.Def{
		Name: "BatchMatrixSetDiag", Doc: "Replaces the main diagonals of matrices. Use MatrixSetDiag.",
		In: []string{"input: T", "diagonal: T"}, Out: []string{"output: T"}, Attrs: []string{"T: type"}, Shape: matrixSetDiagV1Shape,
	}, newMatrixSetDiag)
}
