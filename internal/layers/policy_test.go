package layers

import (
	"slices"
	"strings"
)

// A rule says what one package may depend on.
type rule struct {
	pkg  string   // path below the module root, "." for the root; a last element "*" stands for any
	may  []string // packages of this module that it may import, in the same form
	pure bool     // no goroutine, clock, randomness, context or I/O
}

// Sets that rows share: what a package may import that stands on values, on op definitions, and so on up.
var (
	values  = []string{"status", "tensor", "device"}
	ops     = with(values, "opdef")
	graphs  = with(ops, "graph")
	vector  = []string{"internal/invariants", "internal/parallel", "internal/simd", "internal/tile"}
	numeric = slices.Concat(values, vector, []string{"internal/dtypes", "internal/ints", "internal/shapes", "internal/strided",
		"internal/gemm", "internal/conv", "internal/channelwise", "internal/elementwise", "internal/permute", "internal/philox", "internal/rows",
		"internal/monitor", "internal/resource", "internal/batch",
		"internal/special", "internal/quantized"})
	kernels = with(numeric, "opdef", "kernel")
	clients = with(graphs, "op", "gradients", "cluster")
	formats = with(values, "internal/pb", "internal/pbconv")
	roles   = with(graphs, "kernel", "cluster", "internal/pb", "internal/pbconv", "internal/message", "internal/lifetime", "internal/invariants")
)

// policy lists every package of the module. The order is that of the layers.
var policy = []rule{
	// Values and contracts.
	{pkg: "status"},
	{pkg: "internal/invariants"},
	{pkg: "internal/memory"},
	{pkg: "tensor", may: []string{"status", "internal/invariants", "internal/memory"}},
	{pkg: "device", may: []string{"status"}},
	{pkg: "cluster", may: []string{"status", "device", "internal/pb"}},
	{pkg: "opdef", may: values},
	{pkg: "graph", may: ops},
	{pkg: "kernel", may: with(ops, "internal/invariants")},

	// Vector code, which knows slices and not tensors.
	{pkg: "internal/parallel"},
	{pkg: "internal/murmur"},
	{pkg: "internal/farmhash"},
	{pkg: "internal/siphash"},
	{pkg: "internal/simd"},
	{pkg: "internal/tile", may: vector},
	{pkg: "internal/gemm", may: vector},
	{pkg: "internal/conv", may: with(vector, "internal/gemm")},
	{pkg: "internal/channelwise", may: vector},

	// What families of kernels share, and the families, which import neither the graph nor each other.
	{pkg: "internal/dtypes", may: []string{"tensor"}},
	{pkg: "internal/ints", may: values},
	{pkg: "internal/shapes", may: ops},
	{pkg: "internal/permute"},
	{pkg: "internal/philox", may: []string{"tensor", "internal/parallel", "internal/simd"}},
	{pkg: "internal/strided", may: slices.Concat(ops, vector, []string{"internal/ints"})},
	{pkg: "internal/elementwise", may: slices.Concat(ops, vector, []string{"kernel", "internal/dtypes"})},
	{pkg: "internal/rows", may: kernels},
	{pkg: "internal/special"},
	{pkg: "internal/number"},
	{pkg: "internal/fillrows", may: kernels},
	{pkg: "internal/quantized", may: with(ops, "kernel")},
	{pkg: "internal/cross", may: with(values, "internal/farmhash", "internal/ints", "internal/siphash")},
	{pkg: "internal/batch", may: slices.Concat(ops, vector, []string{"internal/strided"})},
	{pkg: "internal/monitor", may: []string{"status"}},
	{pkg: "internal/resource", may: with(ops, "kernel", "internal/murmur", "internal/shapes")},
	{pkg: "internal/jpegenc"},
	{pkg: "kernels/image", may: with(kernels, "internal/jpegenc")},
	{pkg: "kernels/summary", may: with(kernels, "summary")},
	{pkg: "kernels/logging", may: with(kernels, "internal/fileio")},
	{pkg: "kernels/io", may: with(kernels, "internal/fileio", "internal/record", "checkpoint")},
	{pkg: "kernels/table", may: with(kernels, "internal/fileio", "internal/murmur")},
	{pkg: "kernels/random", may: with(kernels, "internal/fileio")},
	{pkg: "kernels/string", may: with(kernels, "internal/murmur", "internal/farmhash", "internal/siphash", "internal/number")},
	{pkg: "kernels/parsing", may: with(kernels, "internal/fileio", "internal/number", "internal/pb", "internal/pbconv")},
	{pkg: "kernels/sparse", may: with(kernels, "internal/cross", "internal/fillrows", "internal/pb", "internal/pbconv")},
	{pkg: "kernels/ragged", may: with(kernels, "internal/cross", "internal/fillrows", "internal/pb")},
	{pkg: "kernels/state", may: with(kernels, "internal/farmhash")},
	{pkg: "kernels/data", may: with(kernels, "checkpoint", "internal/fileio", "internal/murmur", "internal/number", "internal/pb", "internal/pbconv", "internal/record", "internal/rendezvous")},
	{pkg: "kernels/all", may: []string{"kernels/*"}},
	{pkg: "kernels/*", may: kernels},

	// Building graphs.
	{pkg: "op", may: graphs},
	{pkg: "gradients", may: with(graphs, "op")},

	// Messages and their conversions.
	{pkg: "internal/pb"},
	{pkg: "internal/pbconv", may: with(graphs, "cluster", "internal/pb")},
	{pkg: "internal/crc32c"},
	{pkg: "internal/record", may: []string{"status", "internal/crc32c"}},
	{pkg: "internal/fileio", may: []string{"status"}},
	{pkg: "internal/sstable", may: []string{"status", "internal/crc32c"}},
	{pkg: "internal/lifetime"},
	{pkg: "internal/message", may: with(values, "internal/pb")},
	{pkg: "internal/requestid", may: []string{"status"}},

	// Passes and the executor.
	{pkg: "internal/graphtext", may: graphs}, // graphs as text, for the tests of the passes
	{pkg: "internal/lower", may: graphs, pure: true},
	{pkg: "internal/contexts", may: graphs, pure: true},
	{pkg: "internal/optimize", may: with(graphs, "internal/lower"), pure: true},
	{pkg: "internal/place", may: with(graphs, "kernel"), pure: true},
	{pkg: "internal/partition", may: graphs, pure: true},
	{pkg: "internal/rendezvous", may: with(values, "kernel", "internal/invariants")},
	{pkg: "internal/executor", may: with(graphs, "kernel", "internal/invariants", "internal/murmur", "internal/parallel")},
	{pkg: "internal/function", may: with(graphs, "kernel", "op", "gradients", "internal/executor", "internal/lower", "internal/partition",
		"internal/pb", "internal/pbconv", "internal/place", "internal/rendezvous")},

	// Roles: neither imports the other.
	{pkg: "internal/collective", may: with(values, "kernel")},
	{pkg: "internal/worker", may: with(roles, "internal/partition", "internal/executor", "internal/function", "internal/rendezvous",
		"internal/requestid", "internal/collective")},
	{pkg: "internal/master", may: with(roles, "internal/lower", "internal/optimize", "internal/place", "internal/partition", "internal/requestid")},
	{pkg: "internal/task", may: with(roles, "internal/master", "internal/worker", "internal/collective")},
	{pkg: "internal/h2", may: []string{"internal/parallel"}},
	{pkg: "internal/transfer", may: with(values, "internal/message", "internal/rendezvous", "internal/requestid")},
	{pkg: "internal/rpc", may: with(formats, "cluster", "internal/message", "internal/invariants", "internal/h2")},

	// The client, which links no kernel and no executor, and what is built on it.
	{pkg: ".", may: with(graphs, "op", "savedmodel", "internal/lower", "internal/pb", "internal/pbconv", "internal/message", "internal/rpc")},
	{pkg: "checkpoint", may: with(formats, "internal/crc32c", "internal/fileio", "internal/sstable")},
	{pkg: "savedmodel", may: with(graphs, "internal/fileio", "internal/pb", "internal/pbconv")},
	{pkg: "summary", may: with(formats, "internal/fileio", "internal/record")},
	{pkg: "tfrecord", may: []string{"status", "internal/fileio", "internal/record"}},
	{pkg: "interop/files", may: with(clients, ".", "local", "checkpoint", "savedmodel", "summary", "tfrecord", "train")},
	{pkg: "train", may: with(clients, ".", "checkpoint", "summary", "savedmodel", "internal/contexts", "internal/fileio", "internal/pb", "internal/pbconv")},

	// A task and its programs.
	{pkg: "server", may: []string{"*", "internal/*", "kernels/all"}},
	{pkg: "local", may: []string{"*", "internal/*", "kernels/all"}},
	{pkg: "cmd/weft/collect"},
	{pkg: "cmd/weft", may: []string{".", "*", "internal/mnist", "internal/parallel", "kernels/all", "cmd/weft/collect"}},
	{pkg: "examples/*", may: []string{".", "*", "examples/digits", "examples/mlp"}},

	// Tools and tests.
	{pkg: "internal/mnist"},
	{pkg: "internal/layers"},
	{pkg: "internal/kerneltest", may: kernels},
	{pkg: "internal/opgen", may: with(ops, "kernel", "kernels/all")},
	{pkg: "internal/protogen"},
	{pkg: "internal/metamorphic", may: with(graphs, "kernel")},
	{pkg: "bench/floor"},
	{pkg: "bench/goclient", may: with(clients, ".", "local")},
	{pkg: "interop/twin", may: with(clients, ".", "train")},
	{pkg: "interop/*", may: with(graphs, "internal/metamorphic", "internal/pb", "internal/pbconv", "kernels/all")},
	{pkg: "internal/simcluster", may: []string{"*", "internal/*"}},
	{pkg: "internal/testcluster", may: []string{".", "*", "internal/*", "kernels/all"}},
}

// impure are the standard packages through which a pure package could reach a clock, chance, the world or another goroutine.
var impure = []string{"context", "crypto/rand", "io/ioutil", "log", "log/slog", "math/rand", "math/rand/v2", "net", "os", "os/*",
	"net/*", "sync", "sync/atomic", "syscall", "time"}

// drawers are names that say nothing about what a package holds.
var drawers = []string{"util", "utils", "common", "helper", "helpers", "types", "misc", "shared", "base", "y"}

// lookup returns the rule for a package: the row that names it, or else the first pattern that it matches.
func lookup(pkg string) (rule, bool) {
	at := slices.IndexFunc(policy, func(r rule) bool { return r.pkg == pkg })
	if at < 0 {
		at = slices.IndexFunc(policy, func(r rule) bool { return match(r.pkg, pkg) })
	}
	if at < 0 {
		return rule{}, false
	}
	return policy[at], true
}

// match reports whether a package path is the one that a pattern names. A final "*" stands for one path element.
func match(pattern, pkg string) bool {
	prefix, ok := strings.CutSuffix(pattern, "*")
	if !ok {
		return pattern == pkg
	}
	rest, ok := strings.CutPrefix(pkg, prefix)
	return ok && rest != "" && rest != "." && !strings.Contains(rest, "/")
}

func with(set []string, more ...string) []string { return slices.Concat(set, more) }
