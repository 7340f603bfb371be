package main

import (
	"cmp"
	"runtime/debug"
	"strings"
)

// stamp is "COMMIT DATE" or "COMMIT DATE modified". The Makefile sets it with the linker's flag -X,
// since the go command records no commit in a Git worktree or with -buildvcs=false.
var stamp string

// version returns the version of the module, or "devel" and the commit if the module has none.
func version() string {
	info, _ := debug.ReadBuildInfo()
	return describeBuild(info, stamp).version
}

// longVersion returns the version with the commit, its date and the version of Go.
func longVersion() string {
	info, _ := debug.ReadBuildInfo()
	return describeBuild(info, stamp).String()
}

// A build is what is known about the source code of a program.
type build struct {
	version  string
	commit   string // abbreviated
	date     string // of the commit, RFC 3339
	modified bool   // the source code differs from the commit
	compiler string
}

// describeBuild merges what the go command and the Makefile have recorded; info may be nil.
func describeBuild(info *debug.BuildInfo, stamp string) build {
	fields := append(strings.Fields(stamp), "", "", "")
	b := build{commit: fields[0], date: fields[1], modified: fields[2] != ""}
	if info != nil {
		b.compiler = info.GoVersion
		if info.Main.Version != "(devel)" {
			b.version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.commit = s.Value
			case "vcs.time":
				b.date = s.Value
			case "vcs.modified":
				b.modified = s.Value == "true"
			}
		}
	}
	b.commit = b.commit[:min(12, len(b.commit))]
	if b.version == "" {
		b.version = strings.TrimSuffix("devel-"+b.commit, "-")
	}
	return b
}

// String returns the version as weft --version prints it.
func (b build) String() string {
	commit := "commit " + cmp.Or(b.commit, "unknown")
	if b.date != "" {
		commit += " of " + b.date
	}
	if b.modified {
		commit += ", modified"
	}
	return b.version + " (" + commit + ", " + cmp.Or(b.compiler, "unknown Go version") + ")"
}
