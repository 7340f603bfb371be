//go:build race

package server

// raceEnabled: the race detector makes pools forget what they hold at random.
const raceEnabled = true
