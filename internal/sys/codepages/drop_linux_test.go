package codepages

import (
	"os"
	"strings"
	"testing"
)

func TestUnchanged(t *testing.T) {
	const smaps = `00400000-0155d000 r-xp 00000000 fe:00 1234                           /bin/weft
Size:              17780 kB
Rss:               15092 kB
Anonymous:             0 kB
VmFlags: rd ex mr mw me
0155d000-0270e000 r--p 0115d000 fe:00 1234                           /bin/weft
Rss:                8516 kB
Anonymous:             4 kB
0270e000-02881000 rw-p 0230e000 fe:00 1234                           /bin/weft
Rss:                 716 kB
Anonymous:             0 kB
02881000-03881000 rw-p 00000000 00:00 0                              [heap]
Rss:                 716 kB
7f000000-7f001000 r--p 00000000 fe:00 99                             /lib/weft
Rss:                   4 kB
Anonymous:             0 kB
7f001000-7f003000 r--p 02881000 fe:00 1234                           /bin/weft
Rss:                   8 kB
Anonymous:             0 kB
`
	got, err := unchanged(strings.NewReader(smaps), "/bin/weft")
	want := []region{{0x400000, 0x155d000, 15092 << 10}, {0x7f001000, 0x7f003000, 8 << 10}}
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("got %+v, %v", got, err)
	}
}

// The process goes on after its code was dropped, and less of it is resident.
func TestDrop(t *testing.T) {
	dropped, err := Drop()
	if err != nil {
		t.Fatal(err)
	}
	if dropped < 100<<10 {
		t.Errorf("dropped %d bytes", dropped)
	}
	if _, err := os.ReadFile("/proc/self/stat"); err != nil {
		t.Error(err)
	}
	again, err := Drop()
	if err != nil || again >= dropped {
		t.Errorf("dropped %d bytes, and then %d, %v", dropped, again, err)
	}
}
