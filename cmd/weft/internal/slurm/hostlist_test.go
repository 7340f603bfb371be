package slurm

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

var lists = []struct {
	list string
	want []string
}{
	{"node1", []string{"node1"}},
	{"node1,node2", []string{"node1", "node2"}},
	{"node[1-3]", []string{"node1", "node2", "node3"}},
	{"gpu[08-11,3],login", []string{"gpu08", "gpu09", "gpu10", "gpu11", "gpu3", "login"}},
	{"a[1-3,07-09]b[1-2],c", []string{"a1b1", "a1b2", "a2b1", "a2b2", "a3b1", "a3b2", "a07b1", "a07b2", "a08b1", "a08b2", "a09b1", "a09b2", "c"}},
	{"r[1-2]-n[1-2]", []string{"r1-n1", "r1-n2", "r2-n1", "r2-n2"}},
	{"n[9-11]", []string{"n9", "n10", "n11"}},
	{"n[099-101]", []string{"n099", "n100", "n101"}},
	{"n[5,5]", []string{"n5", "n5"}},
}

func TestExpand(t *testing.T) {
	for _, tt := range lists {
		got, err := Expand(tt.list)
		if err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("Expand(%q) = %q, %v; want %q", tt.list, got, err, tt.want)
		}
	}
}

// TestScontrol checks the expected hosts with the command of Slurm, which interop/slurm runs.
func TestScontrol(t *testing.T) {
	if os.Getenv("SLURM_CONF") == "" {
		t.Skip("needs Slurm")
	}
	for _, tt := range lists {
		out, err := exec.Command("scontrol", "show", "hostnames", tt.list).CombinedOutput()
		if err != nil || !slices.Equal(strings.Fields(string(out)), tt.want) {
			t.Errorf("the hosts of %q are %q, %v; want %q", tt.list, out, err, tt.want)
		}
	}
}

func TestExpandRejects(t *testing.T) {
	for _, tt := range []struct{ list, want string }{
		{"", `"" is not a host`},
		{"a,", `"" is not a host`},
		{"a[1", "a ']' is missing"},
		{"a1]", "unexpected ']'"},
		{"a[1[2]]", "unexpected '['"},
		{"a[]", `"" is not a number`},
		{"a[x]", `"x" is not a number`},
		{"a[3-1]", `the range "3-1" is empty`},
		{"a[1-]", `"" is not a number`},
		{"a[-1]", `"" is not a number`},
		{"a[+1]", `"+1" is not a number`},
		{"a[1-2-3]", `"2-3" is not a number`},
		{"a[0-999999999]", "more than 65536 hosts"},
		{"a[0-9223372036854775807]", "is not a number"},
		{"a[0-999]b[0-999]", "more than 65536 hosts"},
		{"a[1-65536],b", "more than 65536 hosts"},
		{"a b", "is not a host"},
		{"a|b", "is not a host"},
	} {
		hosts, err := Expand(tt.list)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Expand(%q) = %d hosts, %v; want an error with %q", tt.list, len(hosts), err, tt.want)
		}
	}
}

func FuzzExpand(f *testing.F) {
	for _, seed := range []string{"node[1-3,07],x", "a[1-2]b[3]", "a[", "[9-11]", "a[0-99999]", "a[000000000000000001]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, list string) {
		hosts, err := Expand(list)
		if err != nil {
			return
		}
		if len(hosts) == 0 || len(hosts) > maxHosts {
			t.Fatalf("%d hosts", len(hosts))
		}
		// hosts without brackets are lists of themselves
		again, err := Expand(strings.Join(hosts, ","))
		if err != nil || !slices.Equal(again, hosts) {
			t.Fatalf("Expand(%q) = %q, and of these %q, %v", list, hosts, again, err)
		}
	})
}
