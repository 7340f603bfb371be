// Package quantize implements the operations that round numbers to the steps of a range, or
// represent them as quantized integers. Quantization-aware training uses the former.
package quantize
