package peer

import (
	"maps"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/proto/pb"
)

func TestClusterOf(t *testing.T) {
	own := cluster.Spec{"ps": cluster.Dense("a:1"), "worker": cluster.Dense("b:1", "c:1")}
	other := cluster.Spec{"ps": cluster.Dense("a:1"), "worker": {3: "b:2"}}
	answer := func(asker, answerer cluster.Spec) *pb.GetStatusResponse {
		req, resp := &pb.GetStatusRequest{}, &pb.GetStatusResponse{}
		if asker != nil {
			AskCluster(req, HashCluster(asker))
		}
		Mark(resp)
		AnswerCluster(roundTrip(t, req), resp, answerer)
		return roundTrip(t, resp)
	}
	for _, tt := range []struct {
		name            string
		asker, answerer cluster.Spec
		want            cluster.Spec
	}{{"equal", own, own, nil}, {"different", own, other, other}, {"not asked", nil, other, nil}} {
		resp := answer(tt.asker, tt.answerer)
		got, err := ClusterOf(resp)
		if err != nil || !maps.EqualFunc(got, tt.want, maps.Equal) || !IsMarked(resp) {
			t.Errorf("%s: got %v, %v", tt.name, got, err)
		}
	}
}

// A caller with an ill-formed hash gets an answer without a specification.
func TestBadClusterHash(t *testing.T) {
	req, resp := &pb.GetStatusRequest{}, &pb.GetStatusResponse{}
	req.ProtoReflect().SetUnknown([]byte{0xc9, 0x3e, 1})
	AnswerCluster(req, resp, cluster.Spec{"ps": cluster.Dense("a:1")})
	if got, err := ClusterOf(resp); got != nil || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

func roundTrip[M proto.Message](t *testing.T, m M) M {
	t.Helper()
	data, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	out := m.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(data, out); err != nil {
		t.Fatal(err)
	}
	return out.(M)
}
