package philox

import (
	"encoding/binary"
	"hash/crc32"
	"math"
	"slices"
	"testing"

	"github.com/weft-ml/weft/internal/numeric/parallel"
)

// TestKnownAnswers checks the test vectors of Random123, the library of the generator's authors.
func TestKnownAnswers(t *testing.T) {
	const ones = math.MaxUint64
	for _, tt := range []struct {
		key, low, high uint64
		want           [4]uint32
	}{
		{0, 0, 0, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{ones, ones, ones, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{0x299f31d0a4093822, 0x85a308d3243f6a88, 0x0370734413198a2e, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		g := At(tt.key, tt.low, tt.high)
		if got := g.Next(); got != tt.want {
			t.Errorf("key %x, counter %x %x: got %x, want %x", tt.key, tt.high, tt.low, got, tt.want)
		}
	}
}

func TestSkip(t *testing.T) {
	for _, start := range [][2]uint64{{0, 0}, {math.MaxUint32 - 1, 0}, {math.MaxUint64 - 1, 7}, {math.MaxUint64, math.MaxUint64}} {
		stepped, skipped := At(5, start[0], start[1]), At(5, start[0], start[1])
		for range 3 {
			stepped.Next()
		}
		skipped.Skip(3)
		if stepped != skipped {
			t.Errorf("from %v: three steps lead to %v, a skip of three to %v", start, stepped, skipped)
		}
	}
	back := At(5, math.MaxUint64-1, math.MaxUint64)
	back.Skip(math.MaxUint64 - 511)
	// as in TensorFlow
	if low, high := back.Counter(); low != math.MaxUint64-513 || high != math.MaxUint64 {
		t.Errorf("a skip of -512 from -2 leads to %x %x", high, low)
	}
}

// TestElementary32 compares the float32 functions with recorded results of the C library, for every
// argument that can occur.
func TestElementary32(t *testing.T) {
	sum, block := uint32(0), []byte(nil)
	for i := range uint32(1 << 23) {
		u := Unit32(i)
		sin, cos := sincos32(float32(2 * math.Pi * float64(u)))
		for _, v := range []float32{log32(max(u, tiny)), sin, cos} {
			block = binary.LittleEndian.AppendUint32(block, math.Float32bits(v))
		}
		if len(block) >= 1<<16 || i == 1<<23-1 {
			sum, block = crc32.Update(sum, crc32.IEEETable, block), block[:0]
		}
	}
	if want := uint32(0x9fc57753); sum != want {
		t.Errorf("checksum %#08x, want %#08x", sum, want)
	}
}

// TestElementary64 does the same for the float64 functions, for some arguments.
func TestElementary64(t *testing.T) {
	var block []byte
	unit := func(bits uint64) float64 { return math.Float64frombits(1023<<52|bits) - 1 }
	for i := uint64(1); i <= 300_000; i++ {
		sin, cos := sincos64(2 * math.Pi * unit(i*0xd1b54a32d192ed03>>12))
		for _, v := range []float64{log64(max(unit(i*0x9e3779b97f4a7c15>>12), tiny)), sin, cos} {
			block = binary.LittleEndian.AppendUint64(block, math.Float64bits(v))
		}
	}
	if sum, want := crc32.ChecksumIEEE(block), uint32(0xc43f9be9); sum != want {
		t.Errorf("checksum %#08x, want %#08x", sum, want)
	}
}

// TestFillDoesNotDependOnThreads fills several blocks with one and with four threads.
func TestFillDoesNotDependOnThreads(t *testing.T) {
	defer parallel.SetThreads(parallel.SetThreads(1))
	a, b := make([]float32, 50_001), make([]float32, 50_001)
	Fill(a, New(1, 2), TruncatedFloat32)
	parallel.SetThreads(4)
	Fill(b, New(1, 2), TruncatedFloat32)
	if !slices.Equal(a, b) {
		t.Error("samples differ between one and four threads")
	}
	Fill(b[:len(b)-2], New(1, 2), TruncatedFloat32)
	if !slices.Equal(a[:len(a)-2], b[:len(b)-2]) {
		t.Error("a truncated last group changes other samples")
	}
}
