package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// runWeft runs a command line and returns its output.
func runWeft(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := newRoot()
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SetArgs(args)
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

func TestCert(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "certs")
	for _, args := range [][]string{
		{"ca", "--dir", dir, "--domain=corp", "--cluster=train", "ps/0", "worker/0"},
		{"task", "--dir", dir, "--host=w1.example", "worker/1"},
		{"client", "--dir", dir, "research/alice"},
		{"operator", "--dir", dir, "bob"},
		{"observer", "--dir", dir, "prometheus"},
	} {
		if out, err := runWeft(t, append([]string{"cert"}, args...)...); err != nil {
			t.Fatal(out, err)
		}
	}
	for name, want := range map[string]string{
		"ps-0": "task ps/0", "worker-1": "task worker/1", "research-alice": "client research/alice",
		"operator-bob": "operator bob", "observer-prometheus": "observer prometheus", "ca": "a CA",
	} {
		out, err := runWeft(t, "cert", "show", filepath.Join(dir, name+".pem"))
		if err != nil || !strings.Contains(out, "is       "+want+"\n") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if st, err := os.Stat(filepath.Join(dir, name+".key")); err != nil || st.Mode().Perm() != 0o600 {
			t.Errorf("the key of %s has the mode %v, %v", name, st.Mode(), err)
		}
	}
	for _, args := range [][]string{
		{"ca", "--dir", dir}, {"task", "--dir", dir, "worker"}, {"client", "--dir", dir, "alice"},
		{"client", "--dir", dir, "a/b/c"}, {"task", "--dir", t.TempDir(), "ps/0"}, {"show", dir}, {"operator"},
	} {
		if out, err := runWeft(t, append([]string{"cert"}, args...)...); err == nil {
			t.Errorf("%v: no error\n%s", args, out)
		}
	}
}

func TestAuthCan(t *testing.T) {
	if out, err := runWeft(t, "auth", "can", "observer", "GetStatus"); err != nil || !strings.Contains(out, "WorkerService/GetStatus: yes") {
		t.Error(out, err)
	}
	if out, err := runWeft(t, "auth", "can", "client", "RunGraph"); err == nil {
		t.Error(out)
	}
	if _, err := runWeft(t, "auth", "can", "root", "RunGraph"); exitStatus(err) != exitUsage {
		t.Error(err)
	}
}

func TestCheckListsDoors(t *testing.T) {
	dir := t.TempDir()
	if out, err := runWeft(t, "cert", "ca", "--dir", dir, "worker/0"); err != nil {
		t.Fatal(out, err)
	}
	tls := []string{"--tls-cert", dir + "/worker-0.pem", "--tls-key", dir + "/worker-0.key", "--tls-ca", dir + "/ca.pem"}
	server := func(args ...string) (string, error) {
		return runWeft(t, append([]string{"server", "--check", "--cluster-spec=worker|localhost:0;localhost:1", "--job-name=worker"}, args...)...)
	}
	for _, tt := range []struct {
		args   []string
		want   string
		status int
	}{
		{[]string{"--task-index=0"}, "any user of this machine can run graphs here", 0},
		{append([]string{"--task-index=0", "--health=open"}, tls...), "health checks need no certificate", 0},
		{append([]string{"--task-index=0", "--listen=0.0.0.0:0"}, tls...), "roles decide", 0},
		{append([]string{"--task-index=0", "--file-root=a=" + dir}, tls...), "roles decide", 0},
		{[]string{"--task-index=0", "--listen=0.0.0.0:0"}, "", exitConfig},
		{[]string{"--task-index=0", "--listen=0.0.0.0:0", "--insecure"}, "every host that reaches this task can run graphs here", 0},
		// the certificate of another task
		{append([]string{"--task-index=1", "--listen=127.0.0.1:0"}, tls...), "", exitConfig},
		{[]string{"--task-index=0", "--tls-cert=x"}, "", exitUsage},
		{[]string{"--task-index=0", "--health=shut"}, "", exitUsage},
	} {
		out, err := server(tt.args...)
		status := 0
		if err != nil {
			status = exitStatus(err)
		}
		if status != tt.status || !strings.Contains(out, tt.want) {
			t.Errorf("%v: status %d, %v\n%s", tt.args, status, err, out)
		}
	}
}
