"""A real TensorFlow against Weft, in both directions. Run it with make interop; README.md says how cases are written."""
