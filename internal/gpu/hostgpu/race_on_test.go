//go:build race

package hostgpu

const raceDetector = true
