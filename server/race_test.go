//go:build race

package server

// raceEnabled reports that the race detector is on. It makes pools drop objects at random.
const raceEnabled = true
