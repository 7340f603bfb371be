// Package quantize has operations that round numbers to few steps of a range, or represent them so:
// what trains models for fixed-point arithmetic.
package quantize
