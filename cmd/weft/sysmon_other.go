//go:build !linux

package main

// setSysmonTimerSlack has no effect: timer slack exists on Linux only.
func setSysmonTimerSlack() {}
