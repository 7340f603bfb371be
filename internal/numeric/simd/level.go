package simd

import (
	"fmt"
	"os"
	"sync/atomic"
)

// Level is an instruction set that the package can use.
type Level int32

const (
	Generic Level = iota // portable Go
	AVX2                 // AVX2 and FMA
	AVX512               // AVX-512 F, DQ, BW and VL
)

// EnvLevel is the environment variable that limits the level of a process.
const EnvLevel = "WEFT_SIMD"

func (l Level) String() string {
	switch l {
	case AVX2:
		return "avx2"
	case AVX512:
		return "avx512"
	default:
		return "generic"
	}
}

var (
	best  = detect()
	level atomic.Int32
)

func init() { level.Store(int32(startLevel(os.Getenv(EnvLevel)))) }

// startLevel returns the level with the given name. If the name is unknown or the processor does
// not support the level, it returns the best supported one.
func startLevel(name string) Level {
	for _, l := range Levels() {
		if l.String() == name {
			return l
		}
	}
	return best
}

// Levels returns the levels that this processor supports, lowest first.
func Levels() []Level {
	var l []Level
	for i := Generic; i <= best; i++ {
		l = append(l, i)
	}
	return l
}

// Current returns the level in use.
func Current() Level { return Level(level.Load()) }

// Force sets the level for the whole process and returns the previous one. It is for tests and
// measurements. It panics if the processor does not support l.
func Force(l Level) Level {
	if l < Generic || l > best {
		panic(fmt.Sprintf("simd: this processor does not support %v", l))
	}
	return Level(level.Swap(int32(l)))
}
