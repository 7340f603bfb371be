package master

import (
	"strings"
	"testing"

	_ "github.com/weft-ml/weft/internal/kernels/array"
	_ "github.com/weft-ml/weft/internal/kernels/collective"
	_ "github.com/weft-ml/weft/internal/kernels/function"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/kernel"
)

// TestCollectiveKey compares the keys of graphs with those that TensorFlow's masters compute:
// masters of both kinds ask one leader for the numbers of their steps.
func TestCollectiveKey(t *testing.T) {
	reduce := func(name string, instance string) string {
		return name + ` = CollectiveReduce(c) T=float group_size=2 group_key=1 instance_key=` + instance +
			` merge_op="Add" final_op="Id" subdiv_offsets=[0]` + "\n"
	}
	const c = "c = Const() value=float[]{1}\n"
	for _, tt := range []struct {
		what, text string
		want       int64
	}{
		{"none", c, 0},
		{"one", c + reduce("a", "1"), 2714584368876951667},
		{"one twice", c + reduce("a", "1") + reduce("b", "1"), 2714584368876951667},
		{"two", c + reduce("a", "7") + reduce("b", "1"), -4331444885509395340},
		{"a negative one", c + reduce("a", "-3"), -3867505873483794548},
		{"the second form", c + "n = Const() value=int32[]{1}\n" +
			`a = CollectiveReduceV2(c, n, n, n) T=float merge_op="Add" final_op="Id"`, -8686130450446246798},
		{"only the choice of a group", "n = Const() value=int32[]{1}\nm = Const() value=int32[1,1]{0}\n" +
			"a = CollectiveAssignGroupV2(m, n, n)", 0},
		{"in a function", "func F(c: float) -> (y: float) {\n" + strings.TrimSpace(reduce("a", "1")) + "\nreturn y=a:data:0\n}\n" + c +
			"y = PartitionedCall(c) Tin=[float] Tout=[float] f=@F", 2714584368876951667},
		{"in a function that is not called", "func F(c: float) -> (y: float) {\n" + strings.TrimSpace(reduce("a", "1")) +
			"\nreturn y=a:data:0\n}\n" + c, 0},
	} {
		g, err := graphtext.Parse(kernel.Default, tt.text)
		if err != nil {
			t.Errorf("%s: %v", tt.what, err)
			continue
		}
		if got := collectiveKey(g); got != tt.want {
			t.Errorf("%s: got %d, want %d", tt.what, got, tt.want)
		}
	}
}
