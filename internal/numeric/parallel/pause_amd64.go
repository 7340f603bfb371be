package parallel

// pause tells the core that this is a spin loop and takes roughly 0.1 µs.
func pause()
