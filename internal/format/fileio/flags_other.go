//go:build !unix

package fileio

import "os"

// Flags of open that this system does not have.
const (
	openNonblock  = 0
	openNoFollow  = 0
	openDirectory = 0
)

func canWait(*os.File) bool { return false }

func readNow(f *os.File, b []byte) (int, error) { return f.Read(b) }
