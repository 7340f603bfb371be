"""Weft and TensorFlow's server side by side, end to end. Run it with make bench."""
