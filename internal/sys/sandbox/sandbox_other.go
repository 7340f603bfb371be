//go:build !linux

package sandbox

import "fmt"

// Enter restricts the process. That is possible on Linux only.
func Enter(mode Mode, _ Rules) error {
	if mode == Require {
		return fmt.Errorf("--sandbox require: only Linux can restrict a process")
	}
	return nil
}
