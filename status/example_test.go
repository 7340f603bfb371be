package status_test

import (
	"fmt"
	"io/fs"

	"github.com/weft-ml/weft/status"
)

// Errors of the runtime have the codes and texts of TensorFlow. CodeOf finds the code of any error
// that wraps one.
func ExampleCodeOf() {
	err := fmt.Errorf("restoring: %w", status.NotFoundf("Key %s not found in checkpoint", "w"))
	switch status.CodeOf(err) {
	case status.NotFound:
		fmt.Println("missing:", err)
	default:
		fmt.Println(err)
	}
	// Output: missing: restoring: Key w not found in checkpoint
}

// An error that is not a status keeps its cause.
func ExampleErrorf() {
	err := status.Errorf(status.Unavailable, "cannot read the checkpoint: %w", fs.ErrPermission)
	fmt.Println(err.Code, err)
	// Output: UNAVAILABLE cannot read the checkpoint: permission denied
}
