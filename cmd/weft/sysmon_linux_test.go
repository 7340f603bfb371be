package main

import (
	"os"
	"strconv"
	"strings"
	"testing"
)

func TestSetSysmonTimerSlack(t *testing.T) {
	sysmon, err := sysmonThread()
	if err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(slackFile(sysmon))
	if err != nil {
		t.Skip("the kernel does not report the timer slack: ", err)
	}
	defer func() { _ = os.WriteFile(slackFile(sysmon), before, 0) }()
	setSysmonTimerSlack()
	after, err := os.ReadFile(slackFile(sysmon))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.TrimSpace(string(after)); got != strconv.Itoa(sysmonSlack) {
		t.Skipf("the slack is %s ns: this process lacks CAP_SYS_NICE", got)
	}
	if own := slackFile(strconv.Itoa(os.Getpid())); own == slackFile(sysmon) {
		t.Error("sysmonThread returned the main thread")
	}
}
