package device

import (
	"strings"
	"testing"
)

// Results of TensorFlow 2.21 for nodes with these device fields.
var parseTests = []struct {
	name string
	want string // canonical form, "" for any device, "!" for malformed
}{
	{"", ""},
	{"/", ""},
	{"/job:foo/replica:1/task:2/device:GPU:3", "/job:foo/replica:1/task:2/device:GPU:3"},
	{"/job:foo_bar9/replica:1/task:2/device:GPU:3", "/job:foo_bar9/replica:1/task:2/device:GPU:3"},
	{"/device:CPU:1/task:2/replica:0/job:a", "/job:a/replica:0/task:2/device:CPU:1"},
	{"/gpu:*/job:*/replica:4", "/replica:4/device:GPU:*"},
	{"/job:*/device:GPU/replica:4", "/replica:4/device:GPU:*"},
	{"/job:*/replica:*/task:*/device:*", ""},
	{"/device:*:*", ""},
	{"/device:*:1", "/device:*:1"},
	{"/device:myspecialdevice:13", "/device:myspecialdevice:13"},
	{"/device:X_1:0", "/device:X_1:0"},
	{"/device:cpu:0", "/device:cpu:0"},
	{"/cpu:0", "/device:CPU:0"},
	{"/CPU:*", "/device:CPU:*"},
	{"/gpu:10", "/device:GPU:10"},
	{"/GPU:0", "/device:GPU:0"},
	{"/task:007", "/task:7"},
	{"/task:2147483647", "/task:2147483647"},
	{"/job:ps/job:worker", "/job:worker"},
	{"/job:ps/job:*", ""},
	{"/device:CPU:1/device:CPU:0", "/device:CPU:0"},
	{"/device:CPU:1/device:*", ""},
	{"/device:CPU:1/device:GPU", "/device:GPU:*"},
	{"/cpu:1/device:CPU:*", "/device:CPU:*"},

	{"foobar", "!"},
	{"//", "!"},
	{"job:ps", "!"},
	{"cpu:0", "!"},
	{"CPU:0", "!"},
	{"/Cpu:0", "!"},
	{"/cpu", "!"},
	{"/cpu:", "!"},
	{"/JOB:ps", "!"},
	{"/job:", "!"},
	{"/job:1ps", "!"},
	{"/job:_ps", "!"},
	{"/job:p-s", "!"},
	{"/job:ps/", "!"},
	{"/job:*x", "!"},
	{"/job:ps/task", "!"},
	{"/job:ps/task:", "!"},
	{"/job:ps/foo:1", "!"},
	{"/job:foo/replica:-1", "!"},
	{"/task:+1", "!"},
	{"/task:0x0", "!"},
	{"/task:0 ", "!"},
	{"/task:*1", "!"},
	{"/task:99999999999999999999", "!"},
	{"/device::0", "!"},
	{"/device:CPU:", "!"},
	{"/device:_X:0", "!"},
	{"/device:GPU:1x", "!"},
	{"/job:foo/replica:1/task:2/device:GPU:3/extra", "!"},
	{"/job:b\xc3\xa9", "!"},

	{"/task:2147483648", "!"}, // TensorFlow takes these modulo 2^32, so that 4294967297 is task 1
	{"/task:4294967297", "!"},
}

func TestParse(t *testing.T) {
	for _, tt := range parseTests {
		s, err := Parse(tt.name)
		if tt.want == "!" {
			if err == nil || err.Error() != "Malformed device specification '"+tt.name+"'" {
				t.Errorf("Parse(%q) = %v, %v; want an error", tt.name, s, err)
			}
			continue
		}
		if err != nil || s.String() != tt.want {
			t.Errorf("Parse(%q) = %q, %v; want %q", tt.name, s, err, tt.want)
		}
		if again, err := Parse(s.String()); err != nil || again != s {
			t.Errorf("Parse(%q) = %v, %v; want what was printed", s, again, err)
		}
	}
}

func TestParseDoesNotAllocate(t *testing.T) {
	n := testing.AllocsPerRun(100, func() {
		if _, err := Parse("/job:worker/replica:0/task:17/device:CPU:0"); err != nil {
			t.Error(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestParts(t *testing.T) {
	s, err := Parse("/job:foo/cpu:1/task:2/replica:1")
	if err != nil || !s.IsFull() || s.TaskName() != "/job:foo/replica:1/task:2" {
		t.Errorf("%v: full %v, task %q, %v", s, s.IsFull(), s.TaskName(), err)
	}
	for _, name := range []string{"", "/job:a/replica:0/task:0/device:CPU", "/replica:0/task:0/device:CPU:0", "/job:a/task:0/cpu:0", "/job:a/replica:0/cpu:0"} {
		if s, err := Parse(name); err != nil || s.IsFull() {
			t.Errorf("%q is full, or %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, tt := range parseTests {
		f.Add(tt.name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		s, err := Parse(name)
		if err != nil {
			return
		}
		if strings.ContainsAny(s.String(), " ;\n\x00") {
			t.Errorf("%q was read as %q", name, s)
		}
		if again, err := Parse(s.String()); err != nil || again != s {
			t.Errorf("%q is %q, which is %q, %v", name, s, again, err)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	for b.Loop() {
		if _, err := Parse("/job:worker/replica:3/task:0/device:CPU:0"); err != nil {
			b.Fatal(err)
		}
	}
}
