package gputest_test

import (
	"fmt"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/tensor"
)

// TestRemoteCall calls a function on one device from another one. A kernel of the CPU that read the
// memory of a GPU would end the process.
func TestRemoteCall(t *testing.T) {
	const program = `
func Product(a: float, n: int32, s: string) -> (y: float, m: int32, u: string) {
  f = Cast(n) SrcT=int32 DstT=float
  p = Mul(a, f:y:0) T=float
  k = Identity(n) T=int32
  w = Identity(s) T=string
  return y=p:z:0 m=k:output:0 u=w:output:0
}
x = Const() value=float[3]{1,2,3} device=%[1]s
n = Const() value=int32[]{2} device=%[1]s
s = Const() value=string[]{"text"}
target = Const() value=string[]{%[2]q}
call = RemoteCall(target, x, n, s) Tout=[float,int32,string] f=@Product device=%[1]s
y = Neg(call:0) device=%[1]s
m = Neg(call:1) device=%[1]s
`
	devices := []string{"/device:CPU:0", "/device:GPU:0", "/device:GPU:1"}
	for _, caller := range devices {
		for _, target := range devices {
			g, err := graphtext.Parse(kernel.Default, fmt.Sprintf(program, caller, target))
			if err != nil {
				t.Fatal(err)
			}
			session, err := weft.NewSession("local", g)
			if err != nil {
				t.Fatal(err)
			}
			fetches := []op.Output{g.Node("y").Out(0), g.Node("m").Out(0), g.Node("call").Out(2)}
			out, err := session.Run(t.Context(), nil, fetches, nil)
			if err != nil {
				t.Fatalf("from %s on %s: %v", caller, target, err)
			}
			y, m, u := tensor.Values[float32](&out[0]), tensor.Value[int32](&out[1]), tensor.Value[string](&out[2])
			if y[0] != -2 || y[2] != -6 || m != -2 || u != "text" {
				t.Errorf("from %s on %s: %v, %d, %q", caller, target, y, m, u)
			}
			if err := session.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
