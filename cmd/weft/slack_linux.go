package main

import (
	"os"
	"strconv"
)

// monitorSlack is by how many nanoseconds the naps of the Go runtime's monitor may be longer than
// they should be.
const monitorSlack = 1_000_000

// calmMonitor lets the kernel wake the thread with which the Go runtime watches over its others
// less often. For a millisecond after each time that the process wakes from rest, that thread looks
// at everything every 20 µs, which in a task with short steps is as much as a fifth of all
// processor time, and a third of all changes of threads. What it does may wait longer: to take the
// place of a system call that lasts, or of a goroutine that has computed for 10 ms.
//
// The kernel allows this to processes with CAP_SYS_NICE. Others have to live with it.
func calmMonitor() {
	monitor, err := firstThread()
	if err != nil {
		return
	}
	_ = os.WriteFile(slackOf(monitor), strconv.AppendInt(nil, monitorSlack, 10), 0)
}

// firstThread returns the first thread that this process has started: the monitor, before anything
// else is run. The kernel lists threads in the order in which they came.
func firstThread() (id string, err error) {
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

func slackOf(thread string) string { return "/proc/" + thread + "/timerslack_ns" }
