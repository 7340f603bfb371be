package main

import (
	"os"
	"strconv"
)

// sysmonSlack is the timer slack of sysmon, in ns: how much later than requested the kernel may end
// a sleep.
const sysmonSlack = 1_000_000

// setSysmonTimerSlack raises the timer slack of sysmon, the thread with which the Go runtime
// monitors its other threads.
//
// For a millisecond after each time the process becomes active, sysmon sleeps for only 20 µs at a
// time. In a task with short steps this takes up to a fifth of all CPU time and a third of all
// context switches. Its work can wait 1 ms longer: it reassigns the processors of threads in long
// system calls, and preempts goroutines that have computed for 10 ms.
//
// The kernel requires CAP_SYS_NICE to change the slack of another thread. Without it the call has
// no effect.
func setSysmonTimerSlack() {
	id, err := sysmonThread()
	if err != nil {
		return
	}
	_ = os.WriteFile(slackFile(id), strconv.AppendInt(nil, sysmonSlack, 10), 0)
}

// sysmonThread returns the ID of the first thread that this process has started. That is sysmon,
// which the runtime starts before any other code runs. The kernel lists threads in the order of
// their creation, after the main thread.
func sysmonThread() (id string, err error) {
	tasks, err := os.Open("/proc/self/task")
	if err != nil {
		return "", err
	}
	defer tasks.Close()
	ids, err := tasks.Readdirnames(2)
	if err == nil && len(ids) < 2 {
		err = os.ErrNotExist
	}
	if err != nil {
		return "", err
	}
	return ids[1], nil
}

// slackFile returns the file that holds the timer slack of a thread.
func slackFile(thread string) string { return "/proc/" + thread + "/timerslack_ns" }
