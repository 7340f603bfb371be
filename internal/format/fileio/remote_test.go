package fileio

import (
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/format/objectstore"
	"github.com/weft-ml/weft/internal/test/objecttest"
	"github.com/weft-ml/weft/status"
)

// stores are the kinds of stores, with the beginning of their paths.
var stores = map[string]func(*testing.T) *objecttest.Store{"s3://bucket": objecttest.S3, "gs://bucket": objecttest.GCS}

func TestPaths(t *testing.T) {
	join := func(parts ...string) string { return Join(parts...) }
	for _, test := range []struct{ got, want string }{
		{join("s3://b", "a", "c"), "s3://b/a/c"},
		{join("gs://b/x/", "/a/../c"), "gs://b/x/c"},
		{join("", "s3://b", "c"), "s3://b/c"},
		{join("/a", "b"), filepath.Join("/a", "b")},
		{join(), ""},
		{Dir("s3://b/a/c"), "s3://b/a"},
		{Dir("s3://b/a"), "s3://b"},
		{Dir("s3://b"), "s3://b"},
		{Dir("/a/b"), "/a"},
		{Base("s3://b/a/c"), "c"},
		{Base("s3://b"), "b"},
		{Clean("s3://b//a/./c/"), "s3://b/a/c"},
		{fmt.Sprint(IsAbs("s3://b/a"), IsAbs("a/b"), IsAbs("/a")), "true false true"},
		{fmt.Sprint(Abs("gs://b/a/")), "gs://b/a<nil>"},
		{fmt.Sprint(Rel("s3://b/a", "s3://b/a/c/d")), "c/d<nil>"},
		{fmt.Sprint(Rel("s3://b/a", "/a/c")), "/a/c is not relative to s3://b/a"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

// TestSchemes compares with the errors of TensorFlow 2.21, and of its file system of S3 in 1.15.
func TestSchemes(t *testing.T) {
	for path, want := range map[string]string{
		"hdfs://a/b":  "File system scheme 'hdfs' not implemented (file: 'hdfs://a/b')",
		"gs://":       "GCS path doesn't contain a bucket name: gs://",
		"gs://b":      "GCS path doesn't contain an object name: gs://b",
		"s3://./a":    "S3 path doesn't contain a bucket name: s3://./a",
		"s3://b":      "S3 path doesn't contain an object name: s3://b",
		"s3:/b":       "s3:/b; No such file or directory",
		"1x://a":      "1x://a; No such file or directory",
		"s3://b/../a": "s3://b/../a; the key of an object cannot have the parts \".\" and \"..\"",
		"s3://a@b/c":  "s3://a@b/c; \"a@b\" is not the name of a bucket",
	} {
		if _, err := (Files{}).Read(path); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", path, err, want)
		}
	}
	path := filepath.Join(t.TempDir(), "f")
	if err := (Files{}).Write("file://"+path, []byte("x")); err != nil {
		t.Fatal(err)
	}
	if b, err := (Files{}).Read("file://" + path); err != nil || string(b) != "x" {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestRemoteFiles(t *testing.T) {
	for root, start := range stores {
		t.Run(root[:2], func(t *testing.T) {
			start(t)
			var f Files
			at := func(name string) string { return root + "/" + name }
			for _, name := range []string{"dir/a", "dir/b.1", "dir/b.2", "dir/sub/c", "other/x"} {
				if err := f.Write(at(name), []byte(name)); err != nil {
					t.Fatal(err)
				}
			}
			if b, err := f.Read(at("dir/sub/c")); err != nil || string(b) != "dir/sub/c" {
				t.Errorf("Read: %q, %v", b, err)
			}
			entries, err := f.ReadDir(at("dir/"))
			var names []string
			for _, e := range entries {
				names = append(names, fmt.Sprint(e.Name(), e.IsDir()))
			}
			if want := []string{"afalse", "b.1false", "b.2false", "subtrue"}; err != nil || !slices.Equal(names, want) {
				t.Errorf("ReadDir: %q, %v", names, err)
			}
			for pattern, want := range map[string][]string{
				"dir/b.*": {"dir/b.1", "dir/b.2"}, "*/x": {"other/x"}, "dir/[ab]*": {"dir/a", "dir/b.1", "dir/b.2"},
				"dir/a": {"dir/a"}, "dir/none*": nil, "none/*": nil, "d?r/s*/c": {"dir/sub/c"},
			} {
				for i := range want {
					want[i] = at(want[i])
				}
				if got, err := f.Match(at(pattern)); err != nil || !slices.Equal(got, want) {
					t.Errorf("Match(%s): %q, %v", pattern, got, err)
				}
			}
			if info, err := f.Stat(at("dir")); err != nil || !info.IsDir() || info.Name() != "dir" {
				t.Errorf("Stat of a folder: %v, %v", info, err)
			}
			if info, err := f.Stat(root); err != nil || !info.IsDir() {
				t.Errorf("Stat of a bucket: %v, %v", info, err)
			}
			for _, test := range []struct {
				err  error
				code status.Code
			}{
				{second(f.Read(at("none"))), status.NotFound},
				{second(f.Stat(at("none"))), status.NotFound},
				{second(f.ReadDir(at("none"))), status.NotFound},
				{second(f.ReadDir(at("dir/a"))), status.FailedPrecondition},
				{second(f.Read(at("dir"))), status.FailedPrecondition},
				{second(f.CreateNew(at("dir/a"))), status.AlreadyExists},
				{f.Remove(at("none")), status.NotFound},
				{f.Remove(at("dir")), status.FailedPrecondition},
				{f.Rename(at("none"), at("x")), status.NotFound},
				{f.Rename(at("dir/a"), t.TempDir()+"/x"), status.Unimplemented},
				{f.RemoveAll(root), status.InvalidArgument},
				{second(f.Read(strings.Replace(at("x"), "bucket", "none", 1))), status.NotFound},
			} {
				if status.CodeOf(test.err) != test.code {
					t.Errorf("got %v: %v, want %v", status.CodeOf(test.err), test.err, test.code)
				}
			}
			if err := f.Rename(at("dir"), at("moved")); err != nil {
				t.Error(err)
			}
			if b, err := f.Read(at("moved/sub/c")); err != nil || string(b) != "dir/sub/c" || f.Exists(at("dir")) {
				t.Errorf("after Rename: %q, %v", b, err)
			}
			if err := f.RemoveAll(at("moved")); err != nil || f.Exists(at("moved")) {
				t.Errorf("RemoveAll: %v", err)
			}
		})
	}
}

func TestRemoteAppend(t *testing.T) {
	objecttest.S3(t)
	var f Files
	for i, open := range []func(string) (*File, error){f.CreateNew, f.Append, f.Append} {
		a, err := open("s3://bucket/log")
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(a, "line %d\n", i)
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := f.Read("s3://bucket/log"); err != nil || string(b) != "line 0\nline 1\nline 2\n" {
		t.Errorf("got %q, %v", b, err)
	}
	r, err := f.Open("s3://bucket/log")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := r.Seek(-2, io.SeekEnd); err != nil {
		t.Error(err)
	}
	if b, err := io.ReadAll(r); err != nil || string(b) != "2\n" {
		t.Errorf("after Seek: %q, %v", b, err)
	}
	if _, err := r.Write(nil); err != nil {
		return
	}
	if _, err := r.Write([]byte("x")); status.CodeOf(err) != status.FailedPrecondition {
		t.Errorf("writing to a file that was opened for reading: %v", err)
	}
}

// TestRemoteRoots checks the rights of operations.
func TestRemoteRoots(t *testing.T) {
	objecttest.S3(t)
	for _, name := range []string{"data/in/x", "data/in.x", "out/x"} {
		if err := (Files{}).Write("s3://bucket/"+name, nil); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	s, err := New(Config{Roots: []Root{{"in", "s3://bucket/data/in/", true}, {"out", "s3://bucket/out", false}, {"dir", dir, false}}, Names: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f := s.For("Test", Reading|Writing).In(t.Context())
	for path, want := range map[string]status.Code{
		"s3://bucket/data/in/x": status.OK, "s3://bucket/data//in/x": status.OK, "s3://bucket/out/x": status.OK,
		"s3://bucket/data/in.x": status.PermissionDenied, "s3://bucket/data": status.PermissionDenied, "gs://bucket/out/x": status.PermissionDenied,
		"s3://bucket/out/../data/y": status.InvalidArgument, "s3://other/out/x": status.PermissionDenied,
		"/s3:/bucket/out/x": status.PermissionDenied, "s3:/bucket/out/x": status.PermissionDenied, "file:///etc/passwd": status.PermissionDenied,
		"hdfs://bucket/out/x": status.Unimplemented, "s3://bucket/out\x00/x": status.InvalidArgument,
	} {
		if _, err := f.Stat(path); status.CodeOf(err) != want {
			t.Errorf("Stat(%q): %v, want %v", path, err, want)
		}
	}
	if err := f.Write("s3://bucket/data/in/y", nil); status.CodeOf(err) != status.PermissionDenied {
		t.Errorf("writing below a root for reading: %v", err)
	}
	if err := f.Rename("s3://bucket/out/x", "s3://bucket/data/in/y"); status.CodeOf(err) != status.PermissionDenied {
		t.Errorf("renaming to a root for reading: %v", err)
	}
	if err := f.Rename("s3://bucket/data/in/x", "s3://bucket/out/y"); status.CodeOf(err) != status.PermissionDenied {
		t.Errorf("renaming from a root for reading: %v", err)
	}
	for i := range 3 {
		if err := f.Write(fmt.Sprintf("s3://bucket/out/%d", i), nil); err != nil {
			t.Error(err)
		}
	}
	if _, err := f.Match("s3://bucket/out/*"); status.CodeOf(err) != status.ResourceExhausted {
		t.Errorf("matching more names than allowed: %v", err)
	}
	if _, err := f.Match("s3://bucket/*"); status.CodeOf(err) != status.PermissionDenied {
		t.Errorf("matching outside of the roots: %v", err)
	}
	if err := s.For("Test", Reading).Write("s3://bucket/out/z", nil); status.CodeOf(err) != status.Internal {
		t.Errorf("writing without the right: %v", err)
	}
}

// TestRemoteErrors looks at the texts of errors.
func TestRemoteErrors(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	store := objecttest.S3(t)
	store.Fail(func(*http.Request) objecttest.Fault { return objecttest.SlowDown })
	_, err := Files{}.ReadDir("s3://bucket/a")
	if want := "s3://bucket/a; 503 SlowDown: Please reduce your request rate."; status.CodeOf(err) != status.Unavailable || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %v", err, want)
	}
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_PROFILE", "absent")
	if _, err := (Files{}).Read("s3://bucket/a"); status.CodeOf(err) != status.Unauthenticated {
		t.Errorf("without credentials: %v", err)
	}
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	_, err = Files{}.Read("s3://bucket/a")
	if want := "s3://bucket/a; HEAD 127.0.0.1:1: dial tcp 127.0.0.1:1: connect: connection refused"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %v", err, want)
	}
	objectstore.CloseIdleConnections()
}
