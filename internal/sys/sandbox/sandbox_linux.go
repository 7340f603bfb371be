package sandbox

import (
	"fmt"
	"os"
	"slices"

	"github.com/landlock-lsm/go-landlock/landlock"
)

// Enter restricts all threads of the process. It cannot be undone, and child processes inherit it.
// With On it does what the kernel can, and nothing before Linux 5.13. Require needs the rights of
// Linux 6.7, with rules for TCP. It asks for no scope of abstract sockets, which would cut the
// channel for tensors between tasks of a machine.
func Enter(mode Mode, r Rules) error {
	if mode == Off || mode == "" {
		return nil
	}
	rules := []landlock.Rule{
		landlock.RWDirs(r.ReadWrite...).WithRefer(), landlock.RWFiles("/dev/null").IgnoreIfMissing(), landlock.ConnectTCP(dnsPort),
	}
	for _, path := range slices.Concat(system, r.ReadOnly) {
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			rules = append(rules, landlock.RODirs(path))
		} else {
			rules = append(rules, landlock.ROFiles(path).IgnoreIfMissing())
		}
	}
	for _, port := range r.Connect {
		rules = append(rules, landlock.ConnectTCP(port))
	}
	config := landlock.V4
	if mode == On {
		config = config.BestEffort()
	}
	if err := config.Restrict(rules...); err != nil {
		return fmt.Errorf("--sandbox %s: %w", mode, err)
	}
	return nil
}
