// Package buildinfo tells what a program was built from.
package buildinfo

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// stamp is "COMMIT DATE" or "COMMIT DATE modified". The Makefile sets it with the linker's flag -X,
// since the go command records no commit in a Git worktree or with -buildvcs=false.
var stamp string

// A Build is what is known about the source code of a program.
type Build struct {
	Version  string `json:"version"`            // of the module, or "devel" and the commit
	Commit   string `json:"commit,omitempty"`   // abbreviated
	Date     string `json:"date,omitempty"`     // of the commit, RFC 3339
	Modified bool   `json:"modified,omitempty"` // the source code differs from the commit
	Compiler string `json:"go,omitempty"`       // version of Go
}

// Read returns the build of this program.
func Read() Build {
	info, _ := debug.ReadBuildInfo()
	return describe(info, stamp)
}

// describe merges what the go command and the Makefile have recorded; info may be nil.
func describe(info *debug.BuildInfo, stamp string) Build {
	fields := append(strings.Fields(stamp), "", "", "")
	b := Build{Commit: fields[0], Date: fields[1], Modified: fields[2] != ""}
	if info != nil {
		b.Compiler = info.GoVersion
		if info.Main.Version != "(devel)" {
			b.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = s.Value
			case "vcs.time":
				b.Date = s.Value
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	b.Commit = b.Commit[:min(12, len(b.Commit))]
	if b.Version == "" {
		b.Version = strings.TrimSuffix("devel-"+b.Commit, "-")
	}
	return b
}

// String returns the version with the commit, its date and the version of Go.
func (b Build) String() string {
	commit := "commit " + cmp.Or(b.Commit, "unknown")
	if b.Date != "" {
		commit += " of " + b.Date
	}
	if b.Modified {
		commit += ", modified"
	}
	return b.Version + " (" + commit + ", " + cmp.Or(b.Compiler, "unknown Go version") + ")"
}
