package ophistory_test

import (
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/opkit/ophistory"
	"github.com/weft-ml/weft/kernel"
	_ "github.com/weft-ml/weft/kernels"
	"github.com/weft-ml/weft/status"
)

const (
	v012 = iota
	v10
	v14
	v18
	v112
	v115
	later
)

func TestReleases(t *testing.T) {
	if len(ophistory.Releases) != later {
		t.Fatalf("there are %d releases", len(ophistory.Releases))
	}
}

func TestOpSince(t *testing.T) {
	for _, tt := range []struct {
		op   string
		want int
	}{
		{"MatMul", v012},
		{"_Send", v012},
		{"RandomCrop", v012}, // no longer in TensorFlow 2
		{"VarHandleOp", v012},
		{"VariableV2", v10},
		{"StackV2", v14},
		{"MapDataset", v14},
		{"PartitionedCall", v112},
		{"AddV2", v18},
		{"SelectV2", v115},
		{"TensorListConcatV2", v115},
		{"BatchMatMulV3", later},
	} {
		if got, known := ophistory.OpSince(tt.op); got != tt.want || !known {
			t.Errorf("OpSince(%s) is %d, %v; want %d", tt.op, got, known, tt.want)
		}
	}
	if got, known := ophistory.OpSince("NoSuchOp"); got != later || known {
		t.Errorf("OpSince of an unknown operation is %d, %v", got, known)
	}
}

func TestCheckAvailable(t *testing.T) {
	for _, tt := range []struct {
		op      string
		version int
		want    string
	}{
		{"BatchMatrixInverse", 12, ""},
		{"BatchMatrixInverse", 13, "Op BatchMatrixInverse is not available in GraphDef version 13. It has been removed in version 13. Use MatrixInverse instead.."},
		{"BatchMatrixDiagPart", 1087, "Op BatchMatrixDiagPart is not available in GraphDef version 1087. It has been removed in version 14. Use MatrixDiagPart."},
		{"TextLineReader", 25, ""},
		{"MatMul", 1 << 30, ""},
		{"NoSuchOp", 1 << 30, ""},
	} {
		switch err := ophistory.CheckAvailable(tt.op, tt.version); {
		case tt.want == "" && err != nil:
			t.Errorf("%s in version %d: %v", tt.op, tt.version, err)
		case tt.want != "" && (err == nil || err.Error() != tt.want || status.CodeOf(err) != status.Unimplemented):
			t.Errorf("%s in version %d: got %v, want %s", tt.op, tt.version, err, tt.want)
		}
	}
}

func TestAttrSince(t *testing.T) {
	for _, tt := range []struct {
		op, attr string
		want     int
	}{
		{"MatMul", "transpose_a", v012},
		{"MatMul", "grad_a", later},
		{"Conv2D", "data_format", v012},
		{"Conv2D", "dilations", v18},
		{"Conv2D", "explicit_paddings", v115},
		{"Tile", "Tmultiples", v012},
		{"MapDataset", "f", v14},
		{"MapDataset", "use_inter_op_parallelism", v112},
		{"MapDataset", "metadata", later},
		{"RangeDataset", "replicate_on_split", later},
		{"Variable", "shared_name", v012},
		{"VariableV2", "shared_name", v10},
		{"_Send", "client_terminated", v012},
		{"StatefulPartitionedCall", "executor_type", v115},
		{"AddV2", "_XlaMustCompile", v18},
		{"NoSuchOp", "x", later},
	} {
		if got := ophistory.AttrSince(tt.op, tt.attr); got != tt.want {
			t.Errorf("AttrSince(%s, %s) is %d, want %d", tt.op, tt.attr, got, tt.want)
		}
	}
}

// contrib lists operations of tf.contrib. A task of any old release has them if its program has
// loaded their library, so the table does not say.
var contrib = []string{"GatherTree", "ImageProjectiveTransform", "SparseFeatureCross", "SparseFeatureCrossV2"}

// TestRegistryIsKnown fails if an operation is registered that the table lacks: the table must then
// be made from a newer TensorFlow.
func TestRegistryIsKnown(t *testing.T) {
	for _, name := range kernel.Default.Names() {
		if slices.Contains(contrib, name) {
			continue
		}
		if _, known := ophistory.OpSince(name); !known {
			t.Errorf("no release has %s", name)
		}
	}
}
