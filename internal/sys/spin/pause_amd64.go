package spin

// Pause tells the core that the caller is in a spin loop, and takes about 0.1 µs.
func Pause()
