//go:build !linux

package samehost

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// supported reports whether processes can read each other's memory on this system.
const supported = false

func readMemory(int, []byte, uint64) error { return errors.ErrUnsupported }

func readWord(int, uint64) (uint64, error) { return 0, errors.ErrUnsupported }

func peerProcess(*net.UnixConn) (int, error) { return 0, errors.ErrUnsupported }

func newPipe() (in, out *os.File, err error) { return nil, nil, errors.ErrUnsupported }

func sendFile(*net.UnixConn, []byte, *os.File) error { return errors.ErrUnsupported }

func receiveMessage(*net.UnixConn, []byte) (*os.File, error) { return nil, errors.ErrUnsupported }

func vmsplice(syscall.RawConn, []byte) (int, error) { return 0, errors.ErrUnsupported }

func newSlots() (*slots, *os.File, error) { return nil, nil, errors.ErrUnsupported }

func mapSlots(*os.File) (*slots, error) { return nil, errors.ErrUnsupported }

func checkOpen(*net.UnixConn) error { return errors.ErrUnsupported }
