package main

// Exit statuses. Cluster managers decide by the status whether to restart a task: a status from 1
// to 127 means an error that a restart does not fix.
const (
	exitFault  = 1
	exitUsage  = 64
	exitData   = 65
	exitCreate = 73
	exitAccess = 77
	exitConfig = 78
	exitPeer   = 138
	exitSignal = 128 // and the number of the signal that ended the command
)

// exitStatuses describes the exit statuses, for the manual and the pages.
var exitStatuses = []struct {
	status  string
	meaning string
	retry   bool // a restart may help
}{
	{"0", "done", false},
	{"1", "the start or the command has failed", false},
	{"2", "panic of the program", false}, // of Go
	{"64", "the command line is wrong", false},
	{"65", "a file is damaged", false},
	{"73", "a file that the command line names cannot be written", false},
	{"77", "a certificate or a role does not allow the call", false},
	{"78", "certificates or addresses do not allow a secure start", false},
	{"130, 143", "ended by SIGINT, SIGTERM", true},
	{"138", "a task cannot be reached", true},
}
