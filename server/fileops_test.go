//go:build unix

package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

// fileOp uses the path PATH by one operation: p is the path, v a vector of it.
type fileOp struct {
	text    string
	lazy    bool // it opens no file itself
	waits   bool // it waits for files that another program writes
	derived bool // it uses files next to the path, or a folder
}

const filePrelude = `
func first(x: int64) -> (y: int64) {
  y = Identity(x) T=int64
  return y=y:output:0
}
func read(x: variant) -> (y: variant) {
  y = Identity(x) T=variant
  return y=y:output:0
}
p0 = Const() value=string[]{"PATH"}
p = PlaceholderWithDefault(p0) shape=[]
dim = Const() value=int32[1]{1}
v = Reshape(p, dim)
e = Const() value=string[]{""}
ev = Const() value=string[1]{""}
k = Const() value=string[]{"x"}
kv = Const() value=string[1]{"x"}
n0 = Const() value=int64[]{0}
n1 = Const() value=int64[]{1}
nv = Const() value=int64[1]{0}
none = Const() value=int64[0]{}
f0 = Const() value=float[0]{}
t = Const() value=bool[]{true}
x = Const() value=float[1]{1}
r = RangeDataset(n0, n1, n1) output_types=[int64] output_shapes=[[]]
`

// iterated is text for the first element of the dataset d.
func iterated(dtype string) string {
	types := fmt.Sprintf(" output_types=[%s] output_shapes=[<unknown>]\n", dtype)
	return "\nit = IteratorV2() shared_name=\"\" container=\"\"" + types + "make = MakeIterator(d, it)\ny = IteratorGetNext(it, ^make)" + types
}

// reader is text for one record of a reader.
func reader(op string) string {
	queue, read := "FIFOQueueV2", "ReaderReadV2"
	if !strings.Contains(op, "V2(") {
		queue, read = "FIFOQueue", "ReaderRead"
	}
	v2 := strings.TrimPrefix(queue, "FIFOQueue")
	return fmt.Sprintf("q = %s() component_types=[string]\nenq = QueueEnqueueMany%s(q, v)\nrd = %s\nrr = %s(rd, q, ^enq)\ny = Identity(rr:1)\n", queue, v2, op, read)
}

// after is text for a node y that follows the node w.
const after = "\ny = Identity(k, ^w)\n"

const elements = " output_types=[int64] output_shapes=[[]]"

var fileOps = map[string]fileOp{
	"CSVDataset":                       {text: "d = CSVDataset(v, e, n1, t, k, t, e, none, f0) output_types=[float] output_shapes=[[]]" + iterated("float")},
	"CSVDatasetV2":                     {text: "d = CSVDatasetV2(v, e, n1, t, k, t, e, none, f0, none) output_types=[float] output_shapes=[[]]" + iterated("float")},
	"ExperimentalCSVDataset":           {text: "d = ExperimentalCSVDataset(v, e, n1, t, k, t, e, none, f0) output_types=[float] output_shapes=[[]]" + iterated("float")},
	"CacheDataset":                     {text: "d = CacheDataset(r, p)" + elements + iterated("int64"), derived: true},
	"CacheDatasetV2":                   {text: "c = AnonymousMemoryCache()\nd = CacheDatasetV2(r, p, c)" + elements + iterated("int64"), derived: true},
	"CreateSummaryFileWriter":          {text: "sw = SummaryWriter()\nm = Const() value=int32[]{1}\nw = CreateSummaryFileWriter(sw, p, m, m, e)\nws = WriteScalarSummary(sw, n0, k, x0, ^w) T=float\nx0 = Const() value=float[]{1}\ny = Identity(k, ^ws)\n", derived: true},
	"DatasetToTFRecord":                {text: "sd = TensorDataset(k) Toutput_types=[string] output_shapes=[[]]\nw = DatasetToTFRecord(sd, p, e)" + after},
	"ExperimentalDatasetToTFRecord":    {text: "sd = TensorDataset(k) Toutput_types=[string] output_shapes=[[]]\nw = ExperimentalDatasetToTFRecord(sd, p, e)" + after},
	"DecodeProtoV2":                    {text: "y = DecodeProtoV2(kv) message_type=\"M\" field_names=[\"a\"] output_types=[int64] descriptor_source=\"PATH\"\n"},
	"EncodeProto":                      {text: "s = Const() value=int32[1,1]{1}\nxs = Const() value=int64[1,1]{1}\ny = EncodeProto(s, xs) message_type=\"M\" field_names=[\"a\"] descriptor_source=\"PATH\"\n"},
	"MatchingFilesDataset":             {text: "d = MatchingFilesDataset(v)" + iterated("string"), lazy: true},
	"ExperimentalMatchingFilesDataset": {text: "d = ExperimentalMatchingFilesDataset(v)" + iterated("string"), lazy: true},
	"MatchingFiles":                    {text: "y = MatchingFiles(p)\n", lazy: true},
	"FixedLengthRecordDataset":         {text: "d = FixedLengthRecordDataset(v, n0, n1, n0, n1)" + iterated("string")},
	"FixedLengthRecordDatasetV2":       {text: "d = FixedLengthRecordDatasetV2(v, n0, n1, n0, n1, e)" + iterated("string")},
	"FixedLengthRecordReader":          {text: reader("FixedLengthRecordReader() record_bytes=1")},
	"FixedLengthRecordReaderV2":        {text: reader("FixedLengthRecordReaderV2() record_bytes=1")},
	"IdentityReader":                   {text: reader("IdentityReader()"), lazy: true},
	"IdentityReaderV2":                 {text: reader("IdentityReaderV2()"), lazy: true},
	"TFRecordReader":                   {text: reader("TFRecordReader()")},
	"TFRecordReaderV2":                 {text: reader("TFRecordReaderV2()")},
	"TextLineReader":                   {text: reader("TextLineReader()")},
	"TextLineReaderV2":                 {text: reader("TextLineReaderV2()")},
	"WholeFileReader":                  {text: reader("WholeFileReader()")},
	"WholeFileReaderV2":                {text: reader("WholeFileReaderV2()")},
	"FixedUnigramCandidateSampler":     {text: "c = Const() value=int64[1,1]{0}\ny = FixedUnigramCandidateSampler(c) num_true=1 num_sampled=1 unique=false range_max=2 vocab_file=\"PATH\"\n"},
	"GenerateVocabRemapping":           {text: "y = GenerateVocabRemapping(p, p) new_vocab_offset=0 num_new_vocab=1\n"},
	"ImmutableConst":                   {text: "y = ImmutableConst() dtype=float shape=[1] memory_region_name=\"PATH\"\n"},
	"InitializeTableFromTextFile":      {text: "h = HashTable() key_dtype=string value_dtype=int64 shared_name=\"\" container=\"\"\nw = InitializeTableFromTextFile(h, p) key_index=-2 value_index=-1" + after},
	"InitializeTableFromTextFileV2":    {text: "h = HashTableV2() key_dtype=string value_dtype=int64 shared_name=\"\" container=\"\"\nw = InitializeTableFromTextFileV2(h, p) key_index=-2 value_index=-1" + after},
	"ListSnapshotChunksDataset":        {text: "d = ListSnapshotChunksDataset(p) output_types=[string] output_shapes=[[]]" + iterated("string"), waits: true},
	"LoadAndRemapMatrix":               {text: "y = LoadAndRemapMatrix(p, k, nv, none, f0) num_rows=1 num_cols=1\n", derived: true},
	"LoadDataset":                      {text: "d = LoadDataset(p) reader_func=@read Treader_func_args=[]" + elements + iterated("int64"), derived: true},
	"MergeV2Checkpoints":               {text: "w = MergeV2Checkpoints(v, p) delete_old_dirs=false" + after, derived: true},
	"PrintV2":                          {text: "w = PrintV2(k) output_stream=\"file://PATH\"" + after},
	"ReadFile":                         {text: "y = ReadFile(p)\n"},
	"RecordInput":                      {text: "y = RecordInput() file_pattern=\"PATH\" batch_size=1 file_parallelism=1 file_buffer_size=1\n"},
	"Restore":                          {text: "y = Restore(p, k) dt=float\n", derived: true},
	"RestoreSlice":                     {text: "y = RestoreSlice(p, k, e) dt=float\n", derived: true},
	"RestoreV2":                        {text: "y = RestoreV2(p, kv, ev) dtypes=[float]\n", derived: true},
	"Save":                             {text: "w = Save(p, kv, x)" + after},
	"SaveSlices":                       {text: "w = SaveSlices(p, kv, ev, x)" + after},
	"SaveV2":                           {text: "w = SaveV2(p, kv, ev, x)" + after, derived: true},
	"SaveDataset":                      {text: "w = SaveDataset(r, p) shard_func=@first use_shard_func=false Tshard_func_args=[]" + after, derived: true},
	"SaveDatasetV2":                    {text: "d = SaveDatasetV2(r, p) shard_func=@first use_shard_func=false Tshard_func_args=[]" + elements + iterated("int64"), derived: true},
	"Skipgram":                         {text: "y = Skipgram() filename=\"PATH\" batch_size=1\n"},
	"SnapshotChunkDataset":             {text: "d = SnapshotChunkDataset(p)" + elements + iterated("int64")},
	"SnapshotDataset":                  {text: "d = SnapshotDataset(r, p)" + elements + iterated("int64"), derived: true},
	"SnapshotDatasetReader":            {text: "d = SnapshotDatasetReader(p, n0) version=2" + elements + iterated("int64"), derived: true},
	"SnapshotDatasetV2":                {text: "d = SnapshotDatasetV2(r, p) reader_func=@read shard_func=@first Treader_func_args=[] Tshard_func_args=[]" + elements + iterated("int64"), derived: true},
	"TFRecordDataset":                  {text: "d = TFRecordDataset(v, e, n1)" + iterated("string")},
	"TFRecordDatasetV2":                {text: "d = TFRecordDatasetV2(v, e, n1, nv)" + iterated("string")},
	"TextLineDataset":                  {text: "d = TextLineDataset(v, e, n1)" + iterated("string")},
	"WriteFile":                        {text: "w = WriteFile(p, k)" + after},
}

// Every operation that has the name of a file is in the table, and has a class of files.
func TestFileOpsAreKnown(t *testing.T) {
	for _, name := range kernel.Default.Names() {
		op, _ := kernel.Default.LookupOp(name)
		_, known := fileOps[name]
		if files := op.Class&(opdef.FilesRead|opdef.FilesWrite) != 0; files != known {
			t.Errorf("%s: its class is %v, and the table has it: %t", name, op.Class, known)
		}
		def, _ := kernel.Default.Def(name)
		for _, part := range slices.Concat(def.In, def.Attrs) {
			arg, kind, _ := strings.Cut(part, ":")
			if !known && strings.Contains(kind, "string") &&
				slices.ContainsFunc([]string{"file", "path", "_dir", "logdir"}, func(s string) bool { return strings.Contains(arg, s) }) {
				t.Errorf("%s: %s looks like the name of a file, and the class is %v", name, arg, op.Class)
			}
		}
	}
}

// fileRefusals are the codes of operations whose file is refused or cannot be used.
var fileRefusals = []status.Code{
	status.PermissionDenied, status.InvalidArgument, status.NotFound, status.FailedPrecondition, status.DataLoss,
	status.OutOfRange, status.Unimplemented, status.Internal, status.ResourceExhausted, status.AlreadyExists, status.Unknown,
}

// No operation reads or writes outside of the roots, waits for a FIFO or a device, or reads more of
// a file than there is memory.
func TestFileOps(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	secret := filepath.Join(outside, "secret")
	steps := []error{
		os.WriteFile(secret, []byte("secret"), 0o600),
		os.Symlink(outside, filepath.Join(dir, "folder")),
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
	}
	for _, err := range steps {
		if err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(dir, "link")
	up, err := filepath.Rel(dir, secret)
	if err != nil {
		t.Fatal(err)
	}
	l := DefaultLimits()
	l.StepTime = 4 * time.Second
	_, confined := quotaServer(t, WithLimits(l), WithFileRoot("data", dir, false))
	_, free := quotaServer(t, WithLimits(l))
	limit := membudget.Limit()
	defer membudget.SetLimit(limit)
	membudget.SetLimit(1 << 30)
	for name, path := range map[string]string{
		"absolute": secret, "up": dir + "/" + up, "link": link, "folder": dir + "/folder/secret",
		"new": dir + "/folder/new", "proc": "/proc/self/mem", "zero": "/dev/zero",
	} {
		t.Run("root "+name, func(t *testing.T) { fileAttack{server: confined, path: path, link: link, linked: secret}.run(t) })
	}
	for name, path := range map[string]string{
		"fifo": dir + "/fifo", "zero": "/dev/zero", "proc": "/proc/self/mem", "directory": dir,
	} {
		t.Run(name, func(t *testing.T) { fileAttack{server: free, path: path, free: true}.run(t) })
	}
	// An operation that writes replaces the file, and one that reads may find a record in it.
	t.Run("huge", func(t *testing.T) {
		fileAttack{server: confined, path: dir + "/huge", size: 1 << 40, mayPass: true}.run(t)
	})
	if text, err := os.ReadFile(secret); err != nil || string(text) != "secret" {
		t.Errorf("the file outside of the root has %q, %v", text, err)
	}
	if names, err := os.ReadDir(outside); err != nil || len(names) != 1 {
		t.Errorf("outside of the root are %v, %v", names, err)
	}
	if info, err := os.Lstat("/dev/zero"); err == nil && info.Mode()&os.ModeDevice == 0 {
		t.Error("/dev/zero was replaced")
	}
}

// A fileAttack uses a path by all operations.
type fileAttack struct {
	server attacker
	path   string
	link   string // is made to lead to linked before each operation
	linked string
	// the server has no roots, so an operation may write files whose names it derives from the path
	free    bool
	mayPass bool
	size    int64 // of the file, which is made anew for each operation if it is not 0
}

func (f fileAttack) run(t *testing.T) {
	f.server.t = t
	for name, op := range fileOps {
		class := opdef.Class(0)
		if def, ok := kernel.Default.LookupOp(name); ok {
			class = def.Class
		}
		if f.free && op.derived && strings.HasPrefix(f.path, "/dev/") {
			continue // it would leave files there
		}
		if f.link != "" {
			_ = os.Remove(f.link) // it need not exist
			if err := os.Symlink(f.linked, f.link); err != nil {
				t.Fatal(err)
			}
		}
		if f.size > 0 {
			if err := errors.Join(os.WriteFile(f.path, nil, 0o600), os.Truncate(f.path, f.size)); err != nil {
				t.Fatal(err)
			}
		}
		err := f.server.graph(strings.ReplaceAll(filePrelude+op.text, "PATH", f.path))
		writes := class&opdef.FilesWrite != 0
		switch code := status.CodeOf(err); {
		case code == status.OK && (op.lazy || f.mayPass || writes && f.path == f.link || f.free && op.derived):
		case code == status.DeadlineExceeded && (op.waits || f.mayPass):
		case !slices.Contains(fileRefusals, code):
			t.Errorf("%s: %v: %.300v", name, code, err)
		case strings.Contains(err.Error(), "NodeDef") || strings.Contains(err.Error(), "panicked"):
			t.Errorf("%s: %v", name, err)
		}
	}
}
