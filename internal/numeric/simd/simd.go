// Package simd implements vector arithmetic on slices of float32 and float64: maps, reductions, the
// parts of softmax and the steps of the optimizers. All of it runs on the calling goroutine.
// Callers split large work with package parallel.
//
// There are three levels: AVX-512, AVX2 with FMA, and portable Go. The processor determines the
// level at startup. WEFT_SIMD (avx512, avx2 or generic) or Force can lower it. The module in gen
// generates the assembly.
//
// Conventions:
//   - The destination comes first and determines the length. Other slices must be at least as long.
//     The destination may be the same slice as a source, but must not overlap it otherwise.
//   - Max and min return NaN if an operand is NaN.
//   - The vector levels treat denormal numbers as zero and flush denormal results to zero, as
//     TensorFlow does. Portable Go keeps them.
//   - The assembly is called for pieces of about 10 µs, so that it does not delay Go's scheduler.
//
// The levels agree within a few ULP, but not bit for bit. docs/reference/accuracy.md bounds the
// errors.
package simd

//go:generate go -C gen run . -root ../../../..

// Float is the constraint of the element types.
type Float interface{ float32 | float64 }
