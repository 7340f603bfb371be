package peer

import (
	"context"
	"errors"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/graph"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// standIn answers as a release does, and notes the questions.
type standIn struct {
	release Release
	err     error
	asked   []string
}

func (s *standIn) HasMethod(_ context.Context, method string, _ []byte) (bool, error) {
	s.asked = append(s.asked, method)
	return s.release >= Since(method), s.err
}

func deviceStatus(name string) *pb.GetStatusResponse {
	return &pb.GetStatusResponse{DeviceAttributes: []*pb.DeviceAttributes{{Name: name}}}
}

func TestFind(t *testing.T) {
	resp := deviceStatus("/job:ps/replica:0/task:0/device:CPU:0")
	for _, tt := range []struct{ is, found Release }{
		{TF14, TF14}, {TF15, TF15}, {TF19, TF19}, {TF113, TF113}, {TF22to24, TF113}, {TF23, TF23},
	} {
		if got, err := Find(t.Context(), resp, &standIn{release: tt.is}); got != tt.found || err != nil {
			t.Errorf("%v is taken for %v (%v), want %v", tt.is, got, err, tt.found)
		}
	}
	for _, r := range []Release{TF012, TF10} {
		if got, err := Find(t.Context(), deviceStatus("/job:ps/replica:0/task:0/cpu:0"), &standIn{release: r}); got != r || err != nil {
			t.Errorf("%v is taken for %v (%v)", r, got, err)
		}
	}
	none := &standIn{}
	Mark(resp)
	if got, err := Find(t.Context(), resp, none); got != Weft || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
	if len(none.asked) > 0 {
		t.Errorf("tasks that need no question are asked %v", none.asked)
	}
	lost := errors.New("lost")
	if _, err := Find(t.Context(), deviceStatus("/device:CPU:0"), &standIn{err: lost}); !errors.Is(err, lost) {
		t.Errorf("got %v", err)
	}
}

// Questions are asked from the newest release on, since the first answer decides.
func TestQuestionsAreInOrder(t *testing.T) {
	if !slices.IsSortedFunc(questions, func(a, b question) int { return int(b.since) - int(a.since) }) {
		t.Errorf("%v", questions)
	}
}

func TestOfAgent(t *testing.T) {
	for agent, want := range map[string]Release{
		"grpc-c++/1.0.1-pre1 grpc-c/1.0.1-pre1 (linux; chttp2)":          TF012,
		"grpc-c++/1.5.0-dev grpc-c/4.0.0-dev (linux; chttp2)":            TF14,
		"grpc-c++/1.19.1 grpc-c/7.0.0 (linux; chttp2; gold)":             TF113,
		"grpc-c++/1.11.0-dev grpc-c/6.0.0-dev (linux; chttp2; gorgeous)": TF15,
		"grpc-c++/1.13.0 grpc-c/6.0.0 (linux; chttp2; gloriosa)":         TF19, "grpc-c++/2.0.0": Unknown, "grpc-c++/1.x": Unknown,
		"grpc-c++/1.27.0-dev grpc-c/9.0.0 (linux; chttp2; guantao)": TF22to24,
		"grpc-c++/1.74.0 grpc-c/48.0.0 (linux; chttp2)":             Unknown,
		"grpc-python/1.60.0 grpc-c/37.0.0 (linux; chttp2)":          Unknown,
		"grpc-go/1.80.0": Unknown, "": Unknown, "weft": Weft,
	} {
		if got := OfAgent(agent); got != want {
			t.Errorf("%q is taken for %v, want %v", agent, got, want)
		}
	}
}

func TestTraits(t *testing.T) {
	for trait := range Trait(len(traits)) {
		if traits[trait].why == "" || traits[trait].before == Unknown {
			t.Errorf("trait %d has no row", trait)
		}
		for _, r := range []Release{Unknown, TF23, Weft} {
			if r.Has(trait) {
				t.Errorf("%v has trait %d", r, trait)
			}
		}
		if !TF012.Has(trait) {
			t.Errorf("0.12 does not have trait %d", trait)
		}
	}
	if got := FromContext(t.Context()); got != Unknown {
		t.Errorf("got %v", got)
	}
	if got := FromContext(NewContext(t.Context(), TF14)); got != TF14 {
		t.Errorf("got %v", got)
	}
}

// Fields of this program survive the wire, beside others that are unknown.
func TestMarks(t *testing.T) {
	resp, req := &pb.GetStatusResponse{}, &pb.RegisterGraphRequest{SessionHandle: "s"}
	resp.ProtoReflect().SetUnknown([]byte{0xf8, 0x01, 5}) // field 31
	if IsMarked(resp) || UsesNamedFrames(req) {
		t.Error("an empty message is marked")
	}
	Mark(resp)
	UseNamedFrames(req)
	for _, m := range []proto.Message{resp, req} {
		b, err := proto.Marshal(m)
		if err == nil {
			proto.Reset(m)
			err = proto.Unmarshal(b, m)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if !IsMarked(resp) || !UsesNamedFrames(req) || req.GetSessionHandle() != "s" {
		t.Error("a mark is lost")
	}
}

func TestErrorFor(t *testing.T) {
	summary := func(node string) string {
		if node == "a/b" {
			return "{{node a/b}} = Op[T=DT_FLOAT](x, ^y)"
		}
		return ""
	}
	for _, tt := range []struct{ text, want string }{
		{"no\n\t [[{{node a/b}}]]", "no\n\t [[Node: a/b = Op[T=DT_FLOAT](x, ^y)]]"},
		{"no\n\t [[{{node c}}]]\n [[{{node a/b}}]] end", "no\n\t [[Node: c = ]]\n [[Node: a/b = Op[T=DT_FLOAT](x, ^y)]] end"},
		{"{{node a/b}} and [[{{node a/b", "{{node a/b}} and [[{{node a/b"},
		{"plain", "plain"},
	} {
		got := TF14.ErrorFor(status.New(status.Aborted, tt.text), summary)
		if got.Error() != tt.want || status.CodeOf(got) != status.Aborted {
			t.Errorf("got %q, want %q", got, tt.want)
		}
		if got := TF113.ErrorFor(status.New(status.Aborted, tt.text), summary); got.Error() != tt.text {
			t.Errorf("1.15 gets %q", got)
		}
	}
	if TF14.ErrorFor(nil, summary) != nil {
		t.Error("nil is an error")
	}
}

func TestOps(t *testing.T) {
	for _, tt := range []struct {
		release  Release
		op, attr string
		want     bool
	}{
		{TF14, "MatMul", "", true}, {TF113, "MatMul", "transpose_a", true}, {TF113, "MatMul", "grad_a", false},
		{TF012, "ApplyAdam", "use_nesterov", false}, {TF14, "ApplyAdam", "use_nesterov", true}, {Unknown, "MatMul", "grad_a", true},
		{TF14, "PartitionedCall", "", false}, {TF113, "NoSuchOperation", "", true}, {Weft, "MatMul", "grad_a", true},
	} {
		got := tt.release.HasOp(tt.op)
		if tt.attr != "" {
			got = tt.release.HasAttr(tt.op, tt.attr)
		}
		if got != tt.want {
			t.Errorf("%v, %s %s: got %t", tt.release, tt.op, tt.attr, got)
		}
	}
}

func TestOfProducer(t *testing.T) {
	for _, tt := range []struct {
		known    Release
		producer int32
		want     Release
	}{{TF22to24, 134, TF22to24}, {TF22to24, 175, TF22to24}, {TF22to24, 440, TF23}, {TF113, 440, TF113}, {Unknown, 440, Unknown}} {
		if got := OfProducer(tt.known, tt.producer); got != tt.want {
			t.Errorf("%v, %d: got %v, want %v", tt.known, tt.producer, got, tt.want)
		}
	}
}

func TestUpgrade(t *testing.T) {
	old := opdef.Attrs{"T": tensor.Float32, "num_args": int64(2)}
	def := &graph.Def{Nodes: []graph.NodeDef{
		{Name: "a", Op: "_FusedConv2D", Attrs: old}, {Name: "b", Op: "Conv2D", Attrs: old},
		{Name: "c", Op: "_FusedConv2D", Attrs: opdef.Attrs{"TArgs": []tensor.DType{tensor.Int8}}},
	}}
	Upgrade(def)
	want := [][]tensor.DType{{tensor.Float32, tensor.Float32}, nil, {tensor.Int8}}
	for i := range def.Nodes {
		if got, _ := def.Nodes[i].Attrs["TArgs"].([]tensor.DType); !slices.Equal(got, want[i]) {
			t.Errorf("%s: got %v, want %v", def.Nodes[i].Name, got, want[i])
		}
	}
	if len(old) != 2 {
		t.Error("the attributes of the sender were changed")
	}
}
