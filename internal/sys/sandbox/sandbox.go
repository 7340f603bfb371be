// Package sandbox restricts what the process may do, with the means of the operating system: the
// Landlock module of Linux. It is a second wall behind package fileio, for faults in that package
// or in a parser of files.
package sandbox

// Mode says whether a process is restricted.
type Mode string

// The modes.
const (
	Off     Mode = "off"
	On      Mode = "on"      // as far as the kernel can
	Require Mode = "require" // or else an error
)

// Rules are what a restricted process may do. Its open files, connections and listeners stay.
type Rules struct {
	ReadWrite []string // folders whose files it may read and write
	ReadOnly  []string // files, and folders whose files, it may read
	Connect   []uint16 // TCP ports that it may connect to; DNS is added
}

// system are the files that the Go runtime and package memlimit read while a task runs: the sizes
// of memory and of control groups, and the resolver's configuration.
var system = []string{
	"/proc", "/sys/fs/cgroup", "/sys/kernel/mm", "/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/localtime", "/usr/share/zoneinfo",
}

// dnsPort is the port of name servers, which answer long questions over TCP.
const dnsPort = 53
