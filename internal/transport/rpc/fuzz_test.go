package rpc

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/internal/sys/tensormem"
)

// FuzzDecode decodes arbitrary bytes as any message, in buffers of any size. The result is an
// error, or a message that is the same after it is encoded and decoded again.
func FuzzDecode(f *testing.F) {
	tensormem.SetLimit(1 << 20) // otherwise tensors of one repeated value take most of the time
	f.Cleanup(func() { tensormem.SetLimit(1 << 38) })
	for i, p := range pairs() {
		wire, err := proto.Marshal(p.proto)
		if err != nil {
			f.Fatal(err)
		}
		if len(wire) < 1000 { // long inputs are slow
			f.Add(byte(i), byte(3), wire)
		}
	}
	all := pairs()
	f.Fuzz(func(t *testing.T, kind, size byte, wire []byte) {
		msg := fresh(all[int(kind)%len(all)].ours)
		whole := fresh(msg)
		err := decode(sliced(wire, int(size)+1), msg)
		if other := decode(sliced(wire, len(wire)+1), whole); (err == nil) != (other == nil) {
			t.Fatalf("cut: %v; whole: %v", err, other)
		}
		if err != nil {
			return
		}
		data, err := encode(msg)
		if err != nil {
			t.Fatalf("cannot write what was read: %v", err)
		}
		defer data.Free()
		again := fresh(msg)
		if err := decode(data.data, again); err != nil {
			t.Fatalf("cannot read what was written: %v", err)
		}
		if diff := cmp.Diff(msg, again, compareMessages...); diff != "" {
			t.Error(diff)
		}
	})
}
