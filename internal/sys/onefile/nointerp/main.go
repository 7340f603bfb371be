// Command nointerp removes the request for a loader from a program for 64-bit Linux, so that the
// kernel starts it as it starts a static one. See package onefile.
package main

import (
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: nointerp PROGRAM")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "nointerp:", err)
		os.Exit(1)
	}
}

func run(path string) error {
	program, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := remove(program); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, program, 0o755)
}

// Offsets in the header of an ELF file of 64 bits.
const (
	headerSize = 64
	tableAt    = 32
	entrySize  = 54
	entryCount = 56
)

// remove changes the type of the program header PT_INTERP to PT_NULL.
func remove(program []byte) error {
	if len(program) < headerSize || string(program[:4]) != elf.ELFMAG || elf.Class(program[elf.EI_CLASS]) != elf.ELFCLASS64 ||
		elf.Data(program[elf.EI_DATA]) != elf.ELFDATA2LSB {
		return errors.New("not an ELF file of 64 bits")
	}
	at := binary.LittleEndian.Uint64(program[tableAt:])
	size := uint64(binary.LittleEndian.Uint16(program[entrySize:]))
	for i := range uint64(binary.LittleEndian.Uint16(program[entryCount:])) {
		entry := at + i*size
		if entry > uint64(len(program)) || uint64(len(program))-entry < 4 {
			return errors.New("the table of program headers is cut off")
		}
		if elf.ProgType(binary.LittleEndian.Uint32(program[entry:])) == elf.PT_INTERP {
			binary.LittleEndian.PutUint32(program[entry:], uint32(elf.PT_NULL))
			return nil
		}
	}
	return errors.New("it requests no loader")
}
