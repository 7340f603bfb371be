package samehost

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// newSlots returns slots and the file that shares their memory.
func newSlots() (*slots, *os.File, error) {
	fd, err := unix.MemfdCreate("weft-transfer", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fd), "slots")
	if err = unix.Ftruncate(fd, slotsSize); err == nil {
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	var s *slots
	if err == nil {
		s, err = mapSlots(f)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return s, f, nil
}

// mapSlots maps the slots of a file. The file must be sealed against shrinking: access to mapped
// memory beyond the end of its file kills the process.
func mapSlots(f *os.File) (s *slots, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return nil, err
	}
	e := raw.Control(func(fd uintptr) {
		var seals int
		if seals, err = unix.FcntlInt(fd, unix.F_GET_SEALS, 0); err != nil {
			return
		}
		var st unix.Stat_t
		if err = unix.Fstat(int(fd), &st); err != nil {
			return
		}
		if seals&unix.F_SEAL_SHRINK == 0 || st.Size < slotsSize {
			err = errors.New("the file of slots is too small or can shrink")
			return
		}
		var mem []byte
		if mem, err = unix.Mmap(int(fd), 0, slotsSize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err == nil {
			s = newSlotsOver(mem, func(mem []byte) { _ = unix.Munmap(mem) })
		}
	})
	if e != nil {
		return nil, e
	}
	return s, err
}
