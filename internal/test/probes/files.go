package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// refused are the codes of file operations that are not served.
var refused = []status.Code{
	status.PermissionDenied, status.InvalidArgument, status.NotFound, status.FailedPrecondition, status.ResourceExhausted, status.Unimplemented,
}

// fileProbe reads or writes a path below the folder that prepare fills. The server has that folder
// as its only root if rooted is true.
func fileProbe(name, op, path string, rooted bool, prepare func(dir string) error) probe {
	return probe{name: name, codes: refused, rooted: rooted, run: func(c *client) error {
		if prepare != nil {
			if err := prepare(c.dir); err != nil {
				return err
			}
		}
		at := strings.ReplaceAll(path, "DIR", c.dir)
		text := fmt.Sprintf("a = Const() value=string[]{%q}\np = PlaceholderWithDefault(a) shape=[]\n", at)
		switch op {
		case "ReadFile":
			text += "y = ReadFile(p)\n"
		case "WriteFile":
			text += "w = WriteFile(p, p)\ny = Identity(p, ^w)\n"
		case "MatchingFiles":
			text += "y = MatchingFiles(p)\n"
		case "PrintV2":
			text += fmt.Sprintf("w = PrintV2(p) output_stream=\"file://%s\"\ny = Identity(p, ^w)\n", at)
		}
		return c.timed(10*time.Second, text)
	}}
}

func fifo(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600) }

// linkTo makes a symbolic link with the name link.
func linkTo(target string) func(dir string) error {
	return func(dir string) error { return os.Symlink(target, filepath.Join(dir, "link")) }
}

// openFiles reads from as many files at the same time as the server may open.
var openFiles = probe{name: "file-many", rooted: true, run: func(c *client) error {
	path := filepath.Join(c.dir, "lines")
	if err := writeLines(path, 1<<11); err != nil {
		return err
	}
	return c.once(fmt.Sprintf(`
func Lines(x: int64) -> (y: variant) {
  f = Const() value=string[]{%q} dtype=string
  c = Const() value=string[]{""} dtype=string
  b = Const() value=int64[]{0} dtype=int64
  d = TextLineDataset(f:output:0, c:output:0, b:output:0)
  return y=d:handle:0
}
`, path) + datasetOf("string", `
many = Const() value=int64[]{2000000}
one = Const() value=int64[]{1}
i = InterleaveDataset(d, many, one) f=@Lines Targuments=[] output_types=[string] output_shapes=[[]]
s = SkipDataset(i, stop) output_types=[string] output_shapes=[[]]
`))
}}

var fileProbes = []probe{
	openFiles,
	fileProbe("file-zero", "ReadFile", "/dev/zero", false, nil),
	fileProbe("file-stdin", "ReadFile", "/dev/stdin", false, nil),
	fileProbe("file-fifo", "ReadFile", "DIR/fifo", false, fifo),
	fileProbe("file-fifo-print", "PrintV2", "DIR/fifo", false, fifo),
	fileProbe("file-folder", "ReadFile", "DIR", false, nil),
	fileProbe("file-sparse", "ReadFile", "DIR/sparse", false, func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "sparse"), nil, 0o600); err != nil {
			return err
		}
		return os.Truncate(filepath.Join(dir, "sparse"), 1<<40)
	}),
	fileProbe("file-full", "PrintV2", "/dev/full", false, nil),
	fileProbe("file-nul", "ReadFile", "DIR/a\x00b", false, nil),
	fileProbe("file-long", "ReadFile", "DIR/"+strings.Repeat("x", 1<<16), false, nil),
	fileProbe("file-glob", "MatchingFiles", "/*/*/*/*/*/*/*", false, nil),
	fileProbe("root-up", "ReadFile", "DIR/../../../../../etc/passwd", true, nil),
	fileProbe("root-absolute", "ReadFile", "/etc/passwd", true, nil),
	fileProbe("root-link", "ReadFile", "DIR/link", true, linkTo("/etc/passwd")),
	fileProbe("root-link-folder", "ReadFile", "DIR/link/passwd", true, linkTo("/etc")),
	fileProbe("root-link-up", "ReadFile", "DIR/link", true, linkTo("../../../../../etc/passwd")),
	fileProbe("root-proc", "ReadFile", "/proc/self/environ", true, nil),
	fileProbe("root-descriptor", "ReadFile", "DIR/link", true, linkTo("/proc/self/fd/0")),
	fileProbe("root-glob", "MatchingFiles", "/etc/*", true, nil),
	fileProbe("root-write", "WriteFile", "/tmp/weft-probe-outside", true, nil),
	fileProbe("root-write-up", "WriteFile", "DIR/../weft-probe-outside", true, nil),
}

var sessionProbes = []probe{
	{name: "sessions", args: []string{"--max-sessions=50"}, text: "--max-sessions", run: func(c *client) error {
		var err error
		for i := 0; i < 100 && err == nil; i++ {
			_, err = c.create(&pb.GraphDef{})
		}
		return err
	}},
	{name: "partial-runs", text: "--max-partial-runs", run: func(c *client) error {
		handle, err := c.session("a = Placeholder() dtype=float\ny = Identity(a)\n")
		for i := 0; i < 2000 && err == nil; i++ {
			_, err = c.master.PartialRunSetup(c.ctx, &pb.PartialRunSetupRequest{SessionHandle: handle, Feed: []string{"a:0"}, Fetch: []string{"y:0"}})
		}
		return err
	}},
	{name: "callables", text: "--max-callables", run: func(c *client) error {
		handle, err := c.session("a = Placeholder() dtype=float\ny = Identity(a)\n")
		for i := 0; i < 2000 && err == nil; i++ {
			_, err = c.master.MakeCallable(c.ctx, &pb.MakeCallableRequest{
				SessionHandle: handle, Options: &pb.CallableOptions{Feed: []string{"a:0"}, Fetch: []string{"y:0"}},
			})
		}
		return err
	}},
	{name: "session-unknown", codes: []status.Code{status.Aborted}, run: func(c *client) error { return c.step("0123456789abcdef", nil, "y") }},
	{name: "session-own-cluster", codes: append([]status.Code{status.Unavailable, status.DeadlineExceeded}, malformed...), run: func(c *client) error {
		_, err := c.master.CreateSession(c.ctx, &pb.CreateSessionRequest{GraphDef: &pb.GraphDef{}, Target: "grpc://" + c.address, Config: &pb.ConfigProto{
			OperationTimeoutInMs: 3000,
			ClusterDef:           &pb.ClusterDef{Job: []*pb.JobDef{{Name: "x", Tasks: map[int32]string{0: c.address, 1: "192.0.2.1:1"}}}},
		}})
		return err
	}},
	{name: "worker-sessions", mayPass: true, codes: malformed, run: func(c *client) error {
		for i := range 2000 {
			create := &pb.CreateWorkerSessionRequest{SessionHandle: fmt.Sprint("probe", i), MasterTask: "/job:x/replica:0/task:0", MasterIncarnation: int64(i)}
			if err := c.conn.Invoke(c.ctx, rpc.MethodCreateWorkerSession, create); err != nil {
				return err
			}
		}
		return c.conn.Invoke(c.ctx, rpc.MethodDeleteWorkerSession, &pb.DeleteWorkerSessionRequest{SessionHandle: "probe1999"})
	}},
	{name: "worker-unknown-step", codes: append([]status.Code{status.Aborted, status.Cancelled}, malformed...), run: func(c *client) error {
		return c.invoke(rpc.MethodRunGraph, []byte{0x0a, 3, 'x', 'y', 'z', 0x10, 7})
	}},
	{name: "step-time", args: []string{"--max-step-time=3s"}, codes: []status.Code{status.DeadlineExceeded}, run: func(c *client) error {
		return c.once("q = FIFOQueueV2() component_types=[float] container=\"probe\"\ny = QueueDequeueV2(q) component_types=[float]\n")
	}},
}
