package device

import (
	"strings"
	"testing"
)

func spec(t *testing.T, name string) Spec {
	t.Helper()
	s, err := Parse(name)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Each row has two specifications and the result of each kind of merge. "!" with a word of the
// error means failure.
var mergeTests = []struct{ a, b, merge, soft, override string }{
	{"", "", "", "", ""},
	{"/job:foo/replica:1/task:2/cpu:1", "/job:foo/replica:1/task:2/cpu:1", "/job:foo/replica:1/task:2/cpu:1", "=", "="},
	{"", "/job:foo", "/job:foo", "=", "="},
	{"", "/replica:2", "/replica:2", "=", "="},
	{"", "/task:7", "/task:7", "=", "="},
	{"", "/device:GPU:1", "/device:GPU:1", "=", "="},
	{"/job:foo", "/task:7", "/job:foo/task:7", "=", "="},
	{"/job:foo", "/device:GPU:1", "/job:foo/device:GPU:1", "=", "="},
	{"/job:foo/replica:0", "/replica:0/task:1", "/job:foo/replica:0/task:1", "=", "="},
	{"", "/gpu:*", "/gpu:*", "=", "="},
	{"/device:GPU:1", "/gpu:*", "/device:GPU:1", "=", "="},
	{"/job:foo", "/job:bar", "!jobs", "=", "="},
	{"/replica:0", "/replica:1", "!replicas", "=", "="},
	{"/task:0", "/task:1", "!tasks", "=", "="},
	{"/gpu:*", "/cpu:*", "!types", "", "/cpu:*"},
	{"/gpu:*", "/cpu:1", "!types", "", "/cpu:1"},
	{"/gpu:0", "/cpu:1", "!types", "", "/cpu:1"},
	{"/gpu:0", "/cpu:*", "!types", "", "/cpu:0"},
	{"/device:GPU:0", "/device:GPU:1", "!ids", "/device:GPU:*", "/device:GPU:1"},
	{"/job:foo/cpu:*", "/device:GPU:1", "!types", "/job:foo", "/job:foo/gpu:1"},
	{"/cpu:*", "/task:0/device:GPU:1", "!types", "/task:0", "/task:0/gpu:1"},
}

func TestMerge(t *testing.T) {
	for _, tt := range mergeTests {
		a, b := spec(t, tt.a), spec(t, tt.b)
		for _, kind := range []struct {
			name  string
			merge func(Spec, Spec) (Spec, error)
			want  string
		}{
			{"Merge", Spec.Merge, tt.merge}, {"MergeSoft", Spec.MergeSoft, tt.soft}, {"MergeOverride", Spec.MergeOverride, tt.override},
		} {
			want := kind.want
			if want == "=" {
				want = tt.merge
			}
			got, err := kind.merge(a, b)
			if what, fails := strings.CutPrefix(want, "!"); fails {
				if err == nil || !strings.Contains(err.Error(), "Cannot merge devices with incompatible "+what+": '") || got != a {
					t.Errorf("%v.%s(%v) = %v, %v; want an error about %s", a, kind.name, b, got, err, what)
				}
				continue
			}
			if err != nil || got != spec(t, want) {
				t.Errorf("%v.%s(%v) = %v, %v; want %s", a, kind.name, b, got, err, want)
			}
		}
	}
}

func TestMergeErrorShowsWhatAgreed(t *testing.T) {
	_, err := spec(t, "/task:0").Merge(spec(t, "/job:ps/task:1"))
	if want := "Cannot merge devices with incompatible tasks: '/job:ps/task:0' and '/job:ps/task:1'"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestWith(t *testing.T) {
	for _, tt := range []struct{ a, b, want string }{
		{"", "/job:foo", "/job:foo"},
		{"/job:foo", "/job:bar", "/job:bar"},
		{"/job:foo/task:1", "/task:2/device:CPU:0", "/job:foo/task:2/device:CPU:0"},
		{"/cpu:1", "/gpu:*", "/gpu:1"},
		{"/replica:1", "", "/replica:1"},
	} {
		if got := spec(t, tt.a).With(spec(t, tt.b)); got != spec(t, tt.want) {
			t.Errorf("%s with %s is %v, want %s", tt.a, tt.b, got, tt.want)
		}
	}
}

func TestMatches(t *testing.T) {
	const gpu3 = "/job:work/replica:1/task:2/device:GPU:3"
	for _, tt := range []struct {
		spec string
		want bool
	}{
		{"", true}, {"/job:*", true}, {"/job:work", true}, {"/job:*/replica:*/gpu:*", true}, {"/gpu:3", true}, {"/device:*:3", true}, {gpu3, true},
		{"/cpu:*", false}, {"/gpu:2", false}, {"/task:1", false}, {"/replica:0", false}, {"/job:wor", false},
	} {
		if got := spec(t, tt.spec).Matches(spec(t, gpu3)); got != tt.want {
			t.Errorf("%s matches %s: %v", tt.spec, gpu3, got)
		}
	}
}

func TestIsCompatible(t *testing.T) {
	for _, tt := range []struct {
		a, b      string
		want      bool
		same, far bool // same address space, different address spaces
	}{
		{"/job:work/replica:1/task:3/device:GPU:*", "/device:CPU:*", false, false, false},
		{"/job:work/replica:1/task:3", "/device:CPU:*", true, false, false},
		{"/job:work/replica:1/task:3/cpu:0", "/job:work/replica:1/task:3/gpu:4", false, true, false},
		{"/job:work/replica:1/task:3/cpu:0", "/job:work/replica:1/task:4/cpu:0", false, false, true},
		{"/job:work", "/job:ps/task:1", false, false, true},
		{"/task:1", "/task:2", false, false, true},
		{"", "/task:2", true, false, false},
		{"/replica:0/cpu:1", "/replica:0/cpu:2", false, false, false},
	} {
		a, b := spec(t, tt.a), spec(t, tt.b)
		for range 2 {
			if a.IsCompatible(b) != tt.want || a.SameAddressSpace(b) != tt.same || a.DifferentAddressSpace(b) != tt.far {
				t.Errorf("%v and %v: compatible %v, same space %v, different %v", a, b, a.IsCompatible(b), a.SameAddressSpace(b), a.DifferentAddressSpace(b))
			}
			a, b = b, a
		}
	}
}
