//go:build gpu && linux && amd64

package onefile

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

// alone is set by weft_entry if no loader ran.
var alone bool

// loader is the path of the loader in the ABI of the processor.
const loader = "/lib64/ld-linux-x86-64.so.2"

// Alone reports whether the program runs as a static one, and cannot open libraries.
func Alone() bool { return alone }

// Reload starts the program once more by the system's loader, with the same arguments and
// environment, if it runs as a static one. It returns only if it did nothing or failed.
func Reload() error {
	if !alone {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if isLoader(self) {
		return errors.New("the loader did not run")
	}
	if _, err := os.Stat(loader); err != nil {
		return fmt.Errorf("this machine has no glibc: %w", err)
	}
	args := append([]string{loader, "--argv0", os.Args[0], self}, os.Args[1:]...)
	return fmt.Errorf("%s: %w", loader, syscall.Exec(loader, args, os.Environ()))
}

// isLoader reports whether a path is that of a loader.
func isLoader(path string) bool { return strings.HasPrefix(filepath.Base(path), "ld-") }

// Executable returns the path of the program. It is that of [os.Executable], unless the loader is
// the process's program: then the file that this function is in.
func Executable() (string, error) {
	path, err := os.Executable()
	if err != nil || !isLoader(path) {
		return path, err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return "", err
	}
	defer maps.Close()
	return mapped(bufio.NewScanner(maps), uintptr(unsafe.Pointer(&alone)))
}

// mapped returns the file that is mapped nearest before an address.
func mapped(lines *bufio.Scanner, at uintptr) (string, error) {
	found := ""
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 6 || !strings.HasPrefix(fields[5], "/") {
			continue
		}
		from, _, _ := strings.Cut(fields[0], "-")
		start, err := strconv.ParseUint(from, 16, 64)
		if err != nil {
			return "", err
		}
		if uintptr(start) > at {
			break
		}
		found = strings.Join(fields[5:], " ")
	}
	if found == "" {
		return "", fmt.Errorf("no file is mapped at %#x", at)
	}
	return found, lines.Err()
}
