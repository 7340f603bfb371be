package rpc

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails if goroutines outlive the tests. The workers of package parallel stay for the
// whole process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/weft-ml/weft/internal/numeric/parallel.(*worker).run"))
}
