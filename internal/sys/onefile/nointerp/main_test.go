package main

import (
	"debug/elf"
	"encoding/binary"
	"testing"
)

func program(types ...elf.ProgType) []byte {
	b := make([]byte, headerSize+56*len(types))
	copy(b, "\x7fELF\x02\x01")
	binary.LittleEndian.PutUint64(b[tableAt:], headerSize)
	binary.LittleEndian.PutUint16(b[entrySize:], 56)
	binary.LittleEndian.PutUint16(b[entryCount:], uint16(len(types)))
	for i, t := range types {
		binary.LittleEndian.PutUint32(b[headerSize+56*i:], uint32(t))
	}
	return b
}

func TestRemove(t *testing.T) {
	p := program(elf.PT_PHDR, elf.PT_INTERP, elf.PT_LOAD)
	if err := remove(p); err != nil {
		t.Fatal(err)
	}
	if string(p) != string(program(elf.PT_PHDR, elf.PT_NULL, elf.PT_LOAD)) {
		t.Error("another header was changed")
	}
	for name, p := range map[string][]byte{
		"static": p, "empty": nil, "text": make([]byte, 200), "cut": program(elf.PT_PHDR, elf.PT_INTERP)[:headerSize+20],
	} {
		if remove(p) == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzRemove(f *testing.F) {
	f.Add(program(elf.PT_INTERP))
	f.Add(program(elf.PT_LOAD, elf.PT_INTERP)[:100])
	f.Fuzz(func(_ *testing.T, p []byte) { _ = remove(p) })
}
