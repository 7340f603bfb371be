"""Benchmarks that compare Weft with TensorFlow's server: make bench and make bench-kernels."""
