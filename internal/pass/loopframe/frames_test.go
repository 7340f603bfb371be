package loopframe_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/pass/loopframe"
	"github.com/weft-ml/weft/internal/test/graphtext"
	"github.com/weft-ml/weft/status"
)

func TestFind(t *testing.T) {
	const nested = loop + `
inner = Enter(body) T=int32 frame_name="g"
out = Exit(inner) T=int32
use = Add(out, one) T=int32
`
	g, err := graphtext.Parse(testOps(t), nested)
	if err != nil {
		t.Fatal(err)
	}
	frames, err := loopframe.Find(g)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"a": "", "enter": "", "merge": "f", "cond": "f", "one": "f", "next": "f", "exit": "f", "done": "", "inner": "f", "out": "g", "use": "f",
	} {
		if f := frames.RunsIn[g.Node(name).ID]; f == nil || f.Name != want {
			t.Errorf("%s runs in %v, want %q", name, f, want)
		}
	}
	f := frames.RunsIn[g.Node("merge").ID]
	if f.Parent != frames.Root || f.Cond != g.Node("cond") || frames.RunsIn[g.Node("out").ID].Parent != f {
		t.Errorf("the frame of the loop is %+v", f)
	}
}

func TestFrameErrors(t *testing.T) {
	const start = "a = Const() value=float[]{1}\n"
	for _, test := range []struct{ text, want string }{
		{"b = Exit(a)", "Invalid Exit op: Cannot find a corresponding Enter op.\n\t [[{{node b}}]]"},
		{"e = Enter(a) frame_name=\"f\"\nc = Add(a, e)",
			"{{node c}} has inputs from different frames. The input {{node e}} is in frame 'f'. The input {{node a}} is in frame ''."},
		{"e = Enter(a) frame_name=\"f\"\ng = Enter(a) frame_name=\"h\"\nc = Add(g, e)",
			"{{node c}} has inputs from different frames. The input {{node g}} is in frame 'h'. The input {{node e}} is in frame 'f'."},
		{"e = Enter(a) frame_name=\"\"", "The Enter {{node e}} must have a frame name."},
		{"e = Enter(a) frame_name=\"f\"\ng = Enter(e) frame_name=\"f\"",
			"Invalid loop structure: Mismatched parent frames for \"f\": \"f\" vs \"\". The node giving this error: {{node g}}."},
	} {
		g, err := graphtext.Parse(testOps(t), start+test.text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := loopframe.Find(g); err == nil || err.Error() != test.want {
			t.Errorf("%s: got %v", test.text, err)
		}
	}
}

func TestUnreachableNodesHaveNoFrame(t *testing.T) {
	g, err := graphtext.Parse(testOps(t), "m = Merge(n) T=float N=1\nn = NextIteration(m)")
	if err != nil {
		t.Fatal(err)
	}
	frames, err := loopframe.Find(g)
	if err != nil {
		t.Fatal(err)
	}
	if frames.RunsIn[g.Node("m").ID] != nil {
		t.Error("a node that no value reaches has a frame")
	}
}

func TestNesting(t *testing.T) {
	for depth, want := range map[int]status.Code{1000: status.OK, 1001: status.ResourceExhausted} {
		var b strings.Builder
		b.WriteString("n0 = Const() value=int32[]{1}\n")
		for i := range depth {
			fmt.Fprintf(&b, "n%d = Enter(n%d) T=int32 frame_name=\"f%d\"\n", i+1, i, i)
		}
		g, err := graphtext.Parse(testOps(t), b.String())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := loopframe.Find(g); status.CodeOf(err) != want {
			t.Errorf("%d frames: got %v, want %v", depth, err, want)
		}
	}
}
