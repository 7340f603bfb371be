package metamorphic_test

import (
	"testing"

	"github.com/weft-ml/weft/internal/gpu/devices"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/test/gputest"
	"github.com/weft-ml/weft/internal/test/metamorphic"
	"github.com/weft-ml/weft/internal/test/testcluster"
)

// TestRandomProgramsOnGPUs runs random programs whose nodes are on a CPU and two GPUs in software,
// of one task and of two.
func TestRandomProgramsOnGPUs(t *testing.T) {
	gpus, err := gputest.Devices(&devices.Options{Count: 2, NoRetry: true, Growth: true})
	if err != nil {
		t.Skip(err)
	}
	config := &pb.ConfigProto{IsolateSessionState: true, AllowSoftPlacement: true}
	one := testcluster.New(t, testcluster.Options{Jobs: map[string]int{"worker": 1}, GPUs: gpus})
	two := testcluster.New(t, testcluster.Options{Jobs: map[string]int{"worker": 1, "ps": 1}, GPUs: gpus})
	all := []way{
		{"GPUs", []string{"/cpu:0", "/gpu:0", "/gpu:1"}, inMemoryWith(one, config)},
		{"GPUs of two tasks", []string{"/job:worker/gpu:0", "/job:ps/gpu:1", "/job:worker/cpu:0"}, inMemoryWith(two, config)},
	}
	n := min(*programs, 20)
	if testing.Short() {
		n = 8
	}
	for i := range uint64(n) {
		p := metamorphic.Generate(*first + i)
		for _, w := range all {
			if err := w.check(p); err != nil {
				small := metamorphic.Minimize(p, func(p *metamorphic.Program) bool { return w.check(p) != nil })
				t.Fatalf("seed %d: %v\nas small as possible: %v\n%v", *first+i, err, w.check(small), small)
			}
		}
	}
}
