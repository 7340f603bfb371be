package op

import (
	"errors"
	"fmt"

	"github.com/weft-ml/weft/internal/sys/callsite"
)

// Err returns the build errors recorded so far, joined by [errors.Join]; nil if there are none.
func (s *Scope) Err() error { return errors.Join(*s.b.errs...) }

// Fail records a build error, which [Scope.Finalize] returns. It is exported for packages that add
// builders of their own. The error is prefixed with the file and line of the innermost caller
// outside of the packages that build graphs.
func (s *Scope) Fail(err error) {
	*s.b.errs = append(*s.b.errs, fmt.Errorf("%s%w", callsite.Find(), err))
}
