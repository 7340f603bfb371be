package rpc

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/weft-ml/weft/internal/proto/grpcpb"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/internal/transport/secure"
	"github.com/weft-ml/weft/status"
)

// ChannelzService is the name of gRPC's service for the state of connections.
const ChannelzService = "grpc.channelz.v1.Channelz"

// Identifiers of channelz. A connection to the server has firstSocket plus its number. A channel to
// another task has firstChannel plus three times its position, then come its subchannel and its
// socket.
const (
	serverID     = 1
	listenerID   = 2
	firstSocket  = 1 << 20
	firstChannel = 1 << 40
	perChannel   = 3
	// mostResults bounds the entries of an answer.
	mostResults = 1000
)

// channelz describes a server and the connections of its task to other tasks.
type channelz struct {
	server *Server
	conns  []*Connections
}

// RegisterChannelz registers gRPC's service for the state of connections, for programs such as
// grpcdebug. It describes the server and the given connections to other tasks.
func RegisterChannelz(s *Server, log *slog.Logger, conns ...*Connections) {
	z := &channelz{s, conns}
	const prefix = "/" + ChannelzService + "/"
	unary(s, log, prefix+"GetTopChannels", z.getTopChannels)
	unary(s, log, prefix+"GetServers", z.getServers)
	unary(s, log, prefix+"GetServer", z.getServer)
	unary(s, log, prefix+"GetServerSockets", z.getServerSockets)
	unary(s, log, prefix+"GetChannel", z.getChannel)
	unary(s, log, prefix+"GetSubchannel", z.getSubchannel)
	unary(s, log, prefix+"GetSocket", z.getSocket)
}

// channel is a connection to another task.
type channel struct {
	id   int64
	conn *Conn
	info grpch2.ClientInfo
}

// channels returns the connections to other tasks, by identifier.
func (z *channelz) channels() []channel {
	var out []channel
	for i, set := range z.conns {
		for _, conn := range set.all() {
			id := firstChannel + perChannel*(int64(conn.number)*int64(len(z.conns))+int64(i))
			out = append(out, channel{id, conn, conn.client.Info()})
		}
	}
	slices.SortFunc(out, func(a, b channel) int { return cmp.Compare(a.id, b.id) })
	return out
}

// find returns the channel to which an identifier belongs, and what the identifier names: 0 for the
// channel, 1 for its subchannel, 2 for its socket.
func (z *channelz) find(id int64) (ch channel, part int64, ok bool) {
	for _, ch := range z.channels() {
		if id >= ch.id && id < ch.id+perChannel {
			return ch, id - ch.id, true
		}
	}
	return channel{}, 0, false
}

var channelStates = map[grpch2.State]grpcpb.ChannelConnectivityState_State{
	grpch2.Idle: grpcpb.ChannelConnectivityState_IDLE, grpch2.Connecting: grpcpb.ChannelConnectivityState_CONNECTING,
	grpch2.Ready: grpcpb.ChannelConnectivityState_READY, grpch2.Failing: grpcpb.ChannelConnectivityState_TRANSIENT_FAILURE,
	grpch2.Closed: grpcpb.ChannelConnectivityState_SHUTDOWN,
}

func (ch channel) data() *grpcpb.ChannelData {
	calls := ch.info.Calls
	out := &grpcpb.ChannelData{
		State: &grpcpb.ChannelConnectivityState{State: channelStates[ch.info.State]}, Target: ch.conn.address,
		CallsStarted: int64(calls.Started), CallsSucceeded: int64(calls.Succeeded), CallsFailed: int64(calls.Failed), //nolint:gosec // counts
	}
	if err := ch.info.Err; err != nil {
		out.Trace = &grpcpb.ChannelTrace{NumEventsLogged: 1, Events: []*grpcpb.ChannelTraceEvent{
			{Description: err.Error(), Severity: grpcpb.ChannelTraceEvent_CT_ERROR},
		}}
	}
	return out
}

func (ch channel) describe() *grpcpb.Channel {
	return &grpcpb.Channel{
		Ref: &grpcpb.ChannelRef{ChannelId: ch.id, Name: ch.conn.address}, Data: ch.data(),
		SubchannelRef: []*grpcpb.SubchannelRef{{SubchannelId: ch.id + 1, Name: ch.conn.address}},
	}
}

func (ch channel) subchannel() *grpcpb.Subchannel {
	out := &grpcpb.Subchannel{Ref: &grpcpb.SubchannelRef{SubchannelId: ch.id + 1, Name: ch.conn.address}, Data: ch.data()}
	if ch.info.Conn != nil {
		out.SocketRef = []*grpcpb.SocketRef{{SocketId: ch.id + 2, Name: ch.conn.address}}
	}
	return out
}

// page returns the first entries of a list by identifier that an answer has room for, from start
// on, and whether these are the last ones.
func page[T any](list []T, id func(T) int64, start, most int64) (out []T, end bool) {
	if most <= 0 || most > mostResults {
		most = mostResults
	}
	list = slices.DeleteFunc(list, func(v T) bool { return id(v) < start })
	n := min(int(most), len(list))
	return list[:n], n == len(list)
}

func (z *channelz) getTopChannels(_ context.Context, req *grpcpb.GetTopChannelsRequest) (*grpcpb.GetTopChannelsResponse, error) {
	list, end := page(z.channels(), func(ch channel) int64 { return ch.id }, req.GetStartChannelId(), req.GetMaxResults())
	resp := &grpcpb.GetTopChannelsResponse{End: end}
	for _, ch := range list {
		resp.Channel = append(resp.Channel, ch.describe())
	}
	return resp, nil
}

func (z *channelz) getChannel(_ context.Context, req *grpcpb.GetChannelRequest) (*grpcpb.GetChannelResponse, error) {
	ch, part, ok := z.find(req.GetChannelId())
	if !ok || part != 0 {
		return nil, status.NotFoundf("there is no channel %d", req.GetChannelId())
	}
	return &grpcpb.GetChannelResponse{Channel: ch.describe()}, nil
}

func (z *channelz) getSubchannel(_ context.Context, req *grpcpb.GetSubchannelRequest) (*grpcpb.GetSubchannelResponse, error) {
	ch, part, ok := z.find(req.GetSubchannelId())
	if !ok || part != 1 {
		return nil, status.NotFoundf("there is no subchannel %d", req.GetSubchannelId())
	}
	return &grpcpb.GetSubchannelResponse{Subchannel: ch.subchannel()}, nil
}

func (z *channelz) describeServer() *grpcpb.Server {
	calls := z.server.Calls()
	out := &grpcpb.Server{Ref: &grpcpb.ServerRef{ServerId: serverID, Name: "task"}, Data: &grpcpb.ServerData{
		CallsStarted: int64(calls.Started), CallsSucceeded: int64(calls.Succeeded), CallsFailed: int64(calls.Failed), //nolint:gosec // counts
	}}
	for i, a := range z.server.Addrs() {
		out.ListenSocket = append(out.ListenSocket, &grpcpb.SocketRef{SocketId: listenerID + int64(i), Name: a.String()})
	}
	return out
}

func (z *channelz) getServers(_ context.Context, req *grpcpb.GetServersRequest) (*grpcpb.GetServersResponse, error) {
	resp := &grpcpb.GetServersResponse{End: true}
	if req.GetStartServerId() <= serverID {
		resp.Server = []*grpcpb.Server{z.describeServer()}
	}
	return resp, nil
}

func (z *channelz) getServer(_ context.Context, req *grpcpb.GetServerRequest) (*grpcpb.GetServerResponse, error) {
	if req.GetServerId() != serverID {
		return nil, status.NotFoundf("there is no server %d", req.GetServerId())
	}
	return &grpcpb.GetServerResponse{Server: z.describeServer()}, nil
}

func socketID(c grpch2.ConnInfo) int64 { return firstSocket + int64(c.Number) } //nolint:gosec // a count

func (z *channelz) getServerSockets(_ context.Context, req *grpcpb.GetServerSocketsRequest) (*grpcpb.GetServerSocketsResponse, error) {
	if req.GetServerId() != serverID {
		return nil, status.NotFoundf("there is no server %d", req.GetServerId())
	}
	list, end := page(z.server.Conns(), socketID, req.GetStartSocketId(), req.GetMaxResults())
	resp := &grpcpb.GetServerSocketsResponse{End: end}
	for _, c := range list {
		resp.SocketRef = append(resp.SocketRef, &grpcpb.SocketRef{SocketId: socketID(c), Name: c.Conn.RemoteAddr().String()})
	}
	return resp, nil
}

func (z *channelz) getSocket(_ context.Context, req *grpcpb.GetSocketRequest) (*grpcpb.GetSocketResponse, error) {
	id := req.GetSocketId()
	if ch, part, ok := z.find(id); ok && part == 2 && ch.info.Conn != nil {
		return &grpcpb.GetSocketResponse{Socket: socket(id, ch.info.Conn, ch.info.Calls)}, nil
	}
	for i, a := range z.server.Addrs() {
		if id == listenerID+int64(i) {
			return &grpcpb.GetSocketResponse{Socket: &grpcpb.Socket{
				Ref: &grpcpb.SocketRef{SocketId: id, Name: a.String()}, Data: &grpcpb.SocketData{}, Local: address(a),
			}}, nil
		}
	}
	for _, c := range z.server.Conns() {
		if socketID(c) != id {
			continue
		}
		out := socket(id, c.Conn, c.Calls)
		if c.LastReply > 0 {
			out.Data.LastMessageSentTimestamp = timestamppb.New(time.Now().Add(-c.LastReply))
		}
		return &grpcpb.GetSocketResponse{Socket: out}, nil
	}
	return nil, status.NotFoundf("there is no socket %d", id)
}

// socket describes a connection.
func socket(id int64, nc net.Conn, calls grpch2.CallCounts) *grpcpb.Socket {
	out := &grpcpb.Socket{
		Ref: &grpcpb.SocketRef{SocketId: id, Name: nc.RemoteAddr().String()}, Local: address(nc.LocalAddr()), Remote: address(nc.RemoteAddr()),
		Data: &grpcpb.SocketData{
			StreamsStarted: int64(calls.Started), StreamsSucceeded: int64(calls.Succeeded), StreamsFailed: int64(calls.Failed), //nolint:gosec // counts
		},
	}
	if _, ok := nc.(*secure.Conn); ok {
		out.Security = &grpcpb.Security{Model: &grpcpb.Security_Tls_{Tls: &grpcpb.Security_Tls{
			CipherSuite: &grpcpb.Security_Tls_OtherName{OtherName: "TLS 1.3"},
		}}}
	}
	if p := principalOf(nc); p != nil {
		out.RemoteName = p.String()
	}
	return out
}

func address(a net.Addr) *grpcpb.Address {
	switch a := a.(type) {
	case *net.TCPAddr:
		ip := a.IP
		if v4 := ip.To4(); v4 != nil {
			ip = v4
		}
		return &grpcpb.Address{Address: &grpcpb.Address_TcpipAddress{TcpipAddress: &grpcpb.Address_TcpIpAddress{IpAddress: ip, Port: int32(a.Port)}}} //nolint:gosec // a port
	case *net.UnixAddr:
		return &grpcpb.Address{Address: &grpcpb.Address_UdsAddress_{UdsAddress: &grpcpb.Address_UdsAddress{Filename: a.Name}}}
	}
	return &grpcpb.Address{Address: &grpcpb.Address_OtherAddress_{OtherAddress: &grpcpb.Address_OtherAddress{Name: a.String()}}}
}
