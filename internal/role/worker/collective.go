package worker

import (
	"cmp"
	"context"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/device"
	"github.com/weft-ml/weft/internal/proto/pb"
	"github.com/weft-ml/weft/internal/proto/pbconv"
	"github.com/weft-ml/weft/internal/role/requestid"
	"github.com/weft-ml/weft/internal/runtime/collective"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/status"
	"github.com/weft-ml/weft/tensor"
)

// RecvBuf returns a buffer that a device of this task offers to another device in a collective
// operation, and waits for it; the step may not have started yet.
func (w *Worker) RecvBuf(ctx context.Context, req *pb.RecvBufRequest) (*pb.RecvBufResponse, error) {
	if w.cache == nil || req.GetRequestId() == 0 {
		return w.recvBuf(ctx, req)
	}
	return remember(ctx, w.cache, req.GetRequestId(), req.GetStepId(), func(ctx context.Context) (*pb.RecvBufResponse, error) {
		resp, err := w.recvBuf(ctx, req)
		if err == nil {
			resp.RequireAck = true
		}
		return resp, err
	})
}

func (w *Worker) recvBuf(ctx context.Context, req *pb.RecvBufRequest) (*pb.RecvBufResponse, error) {
	if err := w.checkReceiver(ctx, req.GetSrcDevice(), req.GetDstDevice()); err != nil {
		return nil, err
	}
	key := req.GetBufRendezvousKey()
	if err := w.recent.Track(req.GetRequestId(), "RecvBuf (GrpcWorker)", key); err != nil {
		return nil, err
	}
	_, local, _ := strings.Cut(req.GetSrcDevice(), "/device:")
	switch d := w.localDevice(local); {
	case d == nil:
		return nil, status.InvalidArgumentf("%s unknown device.", req.GetSrcDevice())
	case d.Incarnation != req.GetSrcIncarnation():
		return nil, status.FailedPreconditionf("RecvBuf expects a different device incarnation: %d vs. %d. Your worker job that "+
			"contains the device (\"%s\") was probably restarted. Check your worker job for the reason why it was restarted.",
			req.GetSrcIncarnation(), d.Incarnation, req.GetSrcDevice())
	}
	t, err := w.takeBuffer(ctx, req, key)
	if err != nil {
		return nil, err
	}
	defer t.Release()
	return bufferResponse(key, t.Bytes())
}

// bufferResponse copies a buffer, which several receivers may request, to a response.
func bufferResponse(key string, content []byte) (*pb.RecvBufResponse, error) {
	if !membudget.Take(int64(len(content))) {
		return nil, status.ResourceExhaustedf("There is not enough memory to send the %d bytes of buffer %.64s (--memory-limit).", len(content), key)
	}
	return &pb.RecvBufResponse{SendStartMicros: time.Now().UnixMicro(), TransportOptions: bufferToProto(content)}, nil
}

// takeBuffer waits for a buffer of a step.
func (w *Worker) takeBuffer(ctx context.Context, req *pb.RecvBufRequest, key string) (tensor.Tensor, error) {
	if req.GetStepId() == singleStep {
		return w.steps.single.Take(ctx, key)
	}
	st, err := w.steps.addReceiver(req.GetStepId(), req.GetDstDevice())
	if err != nil {
		return tensor.Tensor{}, err
	}
	defer w.steps.removeReceiver(st)
	return st.buffers.Take(ctx, key)
}

// bufferType is the type of the message that carries the bytes of a buffer.
const bufferType = "type.googleapis.com/tensorflow.RecvBufRespExtra"

// bufferField is the number of the only field of that message.
const bufferField = 1

// bufferToProto encodes the message directly, so that the bytes are copied once.
func bufferToProto(content []byte) *anypb.Any {
	value := make([]byte, 0, len(content)+16)
	if len(content) > 0 {
		value = protowire.AppendTag(value, bufferField, protowire.BytesType)
		value = protowire.AppendBytes(value, content)
	}
	return &anypb.Any{TypeUrl: bufferType, Value: value}
}

// bufferFromProto decodes the message into dst, whose size must match.
func bufferFromProto(p *anypb.Any, dst []byte) error {
	if p.GetTypeUrl() != bufferType {
		return status.Internalf("RecvBufResponse has no %s", bufferType)
	}
	size := 0
	for value := p.GetValue(); len(value) > 0; {
		num, wire, n := protowire.ConsumeTag(value)
		if n < 0 {
			return status.Internalf("RecvBufResponse cannot be read: %v", protowire.ParseError(n))
		}
		value = value[n:]
		if num == bufferField && wire == protowire.BytesType {
			piece, n := protowire.ConsumeBytes(value)
			if n < 0 {
				return status.Internalf("RecvBufResponse cannot be read: %v", protowire.ParseError(n))
			}
			if size < len(dst) {
				copy(dst[size:], piece)
			}
			size, value = size+len(piece), value[n:]
			continue
		}
		if n = protowire.ConsumeFieldValue(num, wire, value); n < 0 {
			return status.Internalf("RecvBufResponse cannot be read: %v", protowire.ParseError(n))
		}
		value = value[n:]
	}
	if size != len(dst) {
		return status.Internalf("Tensor Size Mismatch: RecvBufResponse returned %d bytes, expected: %d", size, len(dst))
	}
	return nil
}

// CompleteGroup adds a device of any task to a collective group that this task leads, and waits
// until the group is complete.
func (w *Worker) CompleteGroup(ctx context.Context, req *pb.CompleteGroupRequest) (*pb.CompleteGroupResponse, error) {
	if req.GetDeviceAttributes() == nil {
		return nil, status.Internalf("CompleteGroupRequest device_attributes is not set. Make sure you're running the same version " +
			"of Tensorflow on all workers.")
	}
	d, err := memberFromProto(req.GetDeviceAttributes())
	if err != nil {
		return nil, err
	}
	if err := w.checkMember(ctx, d.Name); err != nil {
		return nil, err
	}
	d.Type = req.GetDeviceType()
	g, err := w.Collectives.CompleteGroup(ctx, &collective.Member{
		Device: d, Group: kernel.CollectiveGroup{Key: req.GetGroupKey(), Size: req.GetGroupSize(), Rank: -1},
	})
	if err != nil {
		return nil, err
	}
	described, err := g.Description(func() (any, error) { return describe(g) })
	if err != nil {
		return nil, err
	}
	return &pb.CompleteGroupResponse{
		GroupKey: g.Key, GroupSize: int32(len(g.Members)), DeviceType: g.Type, NumTasks: int32(g.NumTasks()),
		DeviceAttributes: described.([]*pb.DeviceAttributes), //nolint:forcetypeassert // see describe
	}, nil
}

// describe returns the members of a group for all responses, which must not modify them.
func describe(g *collective.Group) ([]*pb.DeviceAttributes, error) {
	out := make([]*pb.DeviceAttributes, len(g.Members))
	for i := range g.Members {
		var err error
		if out[i], err = memberToProto(&g.Members[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// CompleteInstance checks that the members of a group agree on a collective operation.
func (w *Worker) CompleteInstance(ctx context.Context, req *pb.CompleteInstanceRequest) (*pb.CompleteInstanceResponse, error) {
	shape, err := pbconv.ShapeFromProto(req.GetShape())
	if err != nil {
		return nil, err
	}
	if err := w.checkMember(ctx, req.GetDevice()); err != nil {
		return nil, err
	}
	in := &collective.Instance{
		Group: req.GetGroupKey(), Size: req.GetGroupSize(), Key: req.GetInstanceKey(), Name: req.GetName(),
		Kind: kernel.CollectiveKind(req.GetType()), DType: tensor.DType(req.GetDataType()), Shape: shape,
		Device: req.GetDevice(), Source: req.GetIsSource(), StepID: req.GetStepId(),
	}
	source, err := w.Collectives.CompleteInstance(ctx, in)
	if err != nil {
		return nil, err
	}
	return &pb.CompleteInstanceResponse{InstanceKey: in.Key, SourceRank: int32(source)}, nil
}

// maxSequences bounds the keys of one GetStepSequence. A key takes a byte or two of the request,
// and a message of the response. The leader knows no more keys.
const maxSequences = 1 << 16

// GetStepSequence returns the numbers of the next steps of graphs with collective operations, so
// that all masters use the same numbers.
func (w *Worker) GetStepSequence(_ context.Context, req *pb.GetStepSequenceRequest) (*pb.GetStepSequenceResponse, error) {
	if w.Leader != "" && w.Leader != w.Task.String() {
		return nil, status.Internalf("GetStepSequenceAsync called at non-group-leader")
	}
	if n := len(req.GetGraphKey()); n > maxSequences {
		return nil, status.ResourceExhaustedf("GetStepSequence has %d graph keys, more than %d", n, maxSequences)
	}
	resp := &pb.GetStepSequenceResponse{}
	for _, key := range req.GetGraphKey() {
		next, err := w.Sequences.Peek(key)
		if err != nil {
			return nil, err
		}
		resp.StepSequence = append(resp.StepSequence, &pb.StepSequence{GraphKey: key, NextStepId: next})
	}
	return resp, nil
}

func memberFromProto(p *pb.DeviceAttributes) (collective.Device, error) {
	name, err := device.Parse(p.GetName())
	if err != nil {
		return collective.Device{}, err
	}
	return collective.Device{
		Name: name.String(), Type: p.GetDeviceType(), Incarnation: p.GetIncarnation(), MemoryLimit: p.GetMemoryLimit(),
	}, nil
}

func memberToProto(d *collective.Device) (*pb.DeviceAttributes, error) {
	name, err := device.Parse(d.Name)
	if err != nil {
		return nil, err
	}
	return pbconv.DeviceToProto(name, d.MemoryLimit, d.Incarnation), nil
}

// collectives returns the state of a run's collective operations, nil if the graph has none.
func (r *run) collectives() kernel.Collectives {
	if !r.graph.collective {
		return nil
	}
	step := &collective.Step{
		Manager: r.worker.Collectives, ID: r.step.id, Self: r.session.task.String(), Leader: r.graph.leader, Buffers: &r.step.buffers,
	}
	if r.session.peers != nil {
		step.Peers = members{r.worker, r.session.peers}
	}
	return step
}

// leaderOf returns the task that leads the collective groups of a session.
func (w *Worker) leaderOf(config *pb.ConfigProto) string {
	return cmp.Or(LeaderOf(config), w.Leader)
}

// LeaderOf returns the task that leads the collective groups according to a configuration, "" if it
// names none.
func LeaderOf(config *pb.ConfigProto) string {
	leader := config.GetExperimental().GetCollectiveGroupLeader()
	if leader == "" {
		return ""
	}
	if task, err := cluster.ParseTask(leader); err == nil {
		return task.String()
	}
	return leader
}

// members calls the tasks of a group. It implements collective.Peers.
type members struct {
	worker *Worker
	peers  Peers
}

func (m members) CompleteGroup(ctx context.Context, leader string, in *collective.Member) (*collective.Group, error) {
	peer, err := m.peers.Peer(leader)
	if err != nil {
		return nil, err
	}
	attrs, err := memberToProto(&in.Device)
	if err != nil {
		return nil, err
	}
	resp, err := peer.CompleteGroup(ctx, &pb.CompleteGroupRequest{
		GroupKey: in.Group.Key, GroupSize: in.Group.Size, DeviceType: in.Device.Type, DeviceAttributes: attrs,
	})
	if err != nil {
		return nil, err
	}
	g := &collective.Group{Key: resp.GetGroupKey(), Type: resp.GetDeviceType()}
	for _, p := range resp.GetDeviceAttributes() {
		d, err := memberFromProto(p)
		if err != nil {
			return nil, err
		}
		g.Members = append(g.Members, d)
	}
	return g, nil
}

func (m members) CompleteInstance(ctx context.Context, leader string, in *collective.Instance) (source int, err error) {
	peer, err := m.peers.Peer(leader)
	if err != nil {
		return 0, err
	}
	req := &pb.CompleteInstanceRequest{
		Name: in.Name, Type: int32(in.Kind), DataType: pb.DataType(in.DType), Shape: pbconv.ShapeToProto(in.Shape),
		GroupKey: in.Group, GroupSize: in.Size, InstanceKey: in.Key, DeviceType: kernel.CPU, Device: in.Device, IsSource: in.Source,
		StepId: in.StepID,
	}
	for _, offset := range in.Offsets {
		req.SubdivOffset = append(req.SubdivOffset, int32(offset))
	}
	resp, err := peer.CompleteInstance(ctx, req)
	return int(resp.GetSourceRank()), err
}

func (m members) RecvBuf(ctx context.Context, task string, b *collective.Buffer) error {
	peer, err := m.peers.Peer(task)
	if err != nil {
		return err
	}
	req := &pb.RecvBufRequest{
		StepId: b.StepID, BufRendezvousKey: b.Key, NumBytes: int64(len(b.Destination)), SrcDevice: b.From.Name, DstDevice: b.To,
		SrcIncarnation: b.From.Incarnation, RequestId: requestid.New(),
	}
	resp, err := peer.RecvBuf(ctx, req)
	if err != nil {
		return err
	}
	if resp.GetRequireAck() {
		m.worker.acknowledge(peer, req.RequestId)
	}
	return bufferFromProto(resp.GetTransportOptions(), b.Destination)
}
