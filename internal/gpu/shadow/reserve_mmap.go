//go:build linux || darwin

package shadow

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func reserve(size int) ([]byte, error) {
	mem, err := unix.Mmap(-1, 0, size, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, fmt.Errorf("cannot reserve %d bytes of addresses: %w", size, err)
	}
	return mem, nil
}

func unreserve(mem []byte) error { return unix.Munmap(mem) }
