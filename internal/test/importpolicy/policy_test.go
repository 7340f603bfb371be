package importpolicy

import (
	"slices"
	"strings"
)

// groups lists the groups of packages from the ground up, one line per group. A package may import
// the packages of its own group and of every group before it, unless a row of exceptions says
// otherwise. A package in no group fails the test.
//
// The diagram in ARCHITECTURE.md shows the same order.
var groups = [][]string{
	{"status"},
	{"internal/sys/*", "internal/sys/onefile/nointerp"},
	{"tensor", "device"},
	// the contract of an operation has its access to files
	{"opdef", "internal/format/fileio", "internal/format/objectstore"},
	{"internal/gpu/device", "internal/gpu/devices", "internal/gpu/driver", "internal/gpu/hostgpu", "internal/gpu/linalg", "internal/gpu/pool", "internal/gpu/shadow", "internal/gpu/source"},
	{"internal/gpu/dl", "internal/gpu/nvrtc", "internal/gpu/drivertest"},
	{"internal/gpu/cuda", "internal/gpu/opencl"},
	{"internal/gpu/drivers", "internal/gpu/nvrtc/*", "internal/gpu/source/makeptx"},
	{"graph", "kernel"},
	{"internal/numeric/*"},
	{"internal/opkit/*", "internal/gpu/twins", "internal/gpu/cases"},
	{"internal/format/*", "internal/proto/*", "cluster", "internal/trust", "internal/trust/*"},
	{"checkpoint", "savedmodel", "summary", "tfrecord"},
	{"internal/kernels/*"},
	{"internal/pass/loopframe"}, // gradients need it
	{"op", "gradients"},
	{"internal/pass/*"},
	{"internal/runtime/*"},
	{"internal/role/*"},
	{"internal/transport/*"},
	{"internal/inspect/*"},
	{"."},
	{"savedmodel/serve"},
	{"train"},
	{"kernels", "server", "local", "gpu"},
	{"data"},
	{"metrics"},
	{"nn"},
	{"internal/serving", "internal/serving/*", "internal/dataservice"},
	{"cmd/*", "cmd/weft/internal/*", "cmd/internal/*", "internal/test/*", "examples/*", "bench/*", "interop/*"},
}

// An exception narrows what the order of the groups allows.
type exception struct {
	pkg string   // the packages that it applies to, as a pattern
	not []string // packages that they must not import, although their group comes before
	why string
}

// exceptions lists all exceptions. All rows that match a package count.
var exceptions = []exception{
	{
		pkg: "internal/sys/*", not: []string{"status"},
		why: "they know the operating system and the Go runtime only",
	},
	{
		pkg: "internal/numeric/*", not: []string{"device", "opdef", "graph", "kernel"},
		why: "numeric code works on slices, not on operations",
	},
	{
		pkg: "internal/gpu/driver", not: []string{"device", "opdef", "internal/format/fileio"},
		why: "drivers know memory and kernels, not operations",
	},
	{
		pkg: "kernel", not: []string{"graph"},
		why: "a kernel is created from an operation and its attributes, without a graph",
	},
	{
		pkg: "graph", not: []string{"kernel"},
		why: "programs that only build graphs link no kernels",
	},
	{
		pkg: "internal/opkit/*", not: []string{"graph"},
		why: "shared by kernels, which see no graph",
	},
	{
		pkg: "internal/format/*", not: []string{"graph", "kernel", "opdef", "internal/proto/*"},
		why: "formats know bytes and records only",
	},
	{
		pkg: "internal/kernels/*", not: []string{"graph", "internal/kernels/*", "savedmodel"},
		why: "families of kernels are independent of each other and of the graph",
	},
	{
		pkg: "op", not: []string{"kernel", "gradients", "internal/kernels/*", "internal/numeric/*", "internal/opkit/*"},
		why: "builders are generated from the registry and link none of it",
	},
	{
		pkg: "gradients", not: []string{"kernel", "internal/kernels/*", "internal/numeric/*", "internal/opkit/*"},
		why: "gradients are made of graph operations",
	},
	{
		pkg: "internal/pass/*", not: []string{"op", "gradients", "internal/kernels/*", "internal/proto/*"},
		why: "passes are pure functions from graph to graph",
	},
	{
		pkg: "internal/runtime/*", not: []string{"internal/kernels/*"},
		why: "the runtime knows kernels by their interface only",
	},
	{
		pkg: "internal/role/*", not: []string{"internal/kernels/*", "op", "gradients"},
		why: "roles know kernels by their interface only",
	},
	{
		pkg: "internal/role/master", not: []string{"internal/role/worker", "internal/runtime/*"},
		why: "the roles meet in internal/role/task only",
	},
	{
		pkg: "internal/role/worker", not: []string{"internal/role/master"},
		why: "the roles meet in internal/role/task only",
	},
	{
		pkg: "internal/transport/grpch2", not: []string{"tensor", "internal/proto/*", "internal/role/*", "internal/runtime/*"},
		why: "the transport moves bytes",
	},
	{
		pkg: "internal/transport/rpc", not: []string{"internal/role/master", "internal/role/worker", "internal/runtime/*", "internal/transport/samehost"},
		why: "services call the roles through interfaces of their own",
	},
	{
		pkg: ".",
		not: []string{"kernel", "internal/kernels/*", "internal/runtime/*", "internal/role/master", "internal/role/worker"},
		why: "a client links no kernels",
	},
	{
		pkg: "savedmodel/serve", not: []string{"kernel", "internal/kernels/*", "internal/runtime/*", "internal/role/*", "internal/transport/*"},
		why: "serving is a client of sessions",
	},
	{
		pkg: "train", not: []string{"kernel", "internal/kernels/*", "internal/runtime/*", "internal/role/*", "internal/transport/*"},
		why: "training is a client of sessions",
	},
	{
		pkg: "data", not: []string{"gradients", "train", "kernels", "server"},
		why: "reading data needs no training and no network",
	},
	{
		pkg: "metrics", not: []string{"data", "kernels", "server", "local", "internal/*"},
		why: "metrics are nodes of a graph",
	},
	{
		pkg: "nn", not: []string{"server", "internal/kernels/*", "internal/runtime/*", "internal/role/*", "internal/transport/*"},
		why: "models are built of the public API",
	},
	{
		pkg: "kernels", not: []string{"server", "local", "train", "."},
		why: "a blank import registers the operations and links nothing else",
	},
	{
		pkg: "server", not: []string{".", "train", "internal/runtime/*", "internal/kernels/*"},
		why: "a server puts roles and transports together",
	},
	{
		pkg: "local", not: []string{".", "train", "internal/runtime/*", "internal/kernels/*"},
		why: "a local target is a task without a transport",
	},
	{
		pkg: "examples/*", not: []string{"internal/*", "internal/numeric/*", "internal/proto/*", "internal/sys/*"},
		why: "examples show the public API",
	},
}

// pure lists the packages that use no goroutine, clock, randomness, context or I/O.
var pure = []string{"internal/pass/*"}

// impure are the standard packages through which a pure package could reach a clock, randomness,
// the operating system or another goroutine.
var impure = []string{
	"context", "crypto/rand", "io/ioutil", "log", "log/slog", "math/rand", "math/rand/v2", "net", "os", "os/*",
	"net/*", "sync", "sync/atomic", "syscall", "time",
}

// drawers are names that say nothing about what a package holds.
var drawers = []string{
	"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "base", "y",
}

// standard are names of packages of the standard library that a package here must not have.
var standard = []string{
	"bufio", "bytes", "context", "errors", "fmt", "hash", "image", "io", "iter", "list", "log", "maps", "math",
	"net", "os", "path", "reflect", "regexp", "rpc", "runtime", "slices", "sort", "string", "strings", "sync",
	"testing", "time", "unsafe",
}

// groupOf returns the position of a package's group, from 0 at the bottom, or -1 if it is in none.
func groupOf(pkg string) int {
	return slices.IndexFunc(groups, func(g []string) bool { return matchAny(g, pkg) })
}

// allowed reports whether one package of this module may import another. Both must be in a group.
func allowed(pkg, imported string) bool {
	forbidden := slices.ContainsFunc(exceptions, func(e exception) bool {
		return match(e.pkg, pkg) && matchAny(e.not, imported)
	})
	return !forbidden && groupOf(imported) <= groupOf(pkg)
}

func matchAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return match(p, pkg) })
}

// match reports whether a package path is the one that a pattern names. A final "*" stands for one
// path element.
func match(pattern, pkg string) bool {
	prefix, ok := strings.CutSuffix(pattern, "*")
	if !ok {
		return pattern == pkg
	}
	rest, ok := strings.CutPrefix(pkg, prefix)
	return ok && rest != "" && rest != "." && !strings.Contains(rest, "/")
}
