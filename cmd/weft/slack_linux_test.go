package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestCalmMonitor(t *testing.T) {
	monitor, err := firstThread()
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(slackOf(monitor))
	if err != nil {
		t.Skip("the kernel does not tell: ", err)
	}
	defer func() { _ = os.WriteFile(slackOf(monitor), before, 0) }()
	calmMonitor()
	after, err := os.ReadFile(slackOf(monitor))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(after)); got != strconv.Itoa(monitorSlack) {
		t.Skipf("the slack is %s ns: this process may not change it", got)
	}
	if own := slackOf(strconv.Itoa(os.Getpid())); own == slackOf(monitor) {
		t.Error("the monitor is taken to be the main thread")
	}
}
