package server_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc"
	channelzpb "google.golang.org/grpc/channelz/grpc_channelz_v1"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	reflectionpb "google.golang.org/grpc/reflection/grpc_reflection_v1"
	alphapb "google.golang.org/grpc/reflection/grpc_reflection_v1alpha"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/weft-ml/weft/internal/proto/grpcpb"
	"github.com/weft-ml/weft/server"
)

// dialGRPC returns a connection of gRPC's own library.
func dialGRPC(t testing.TB, address string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// startPair starts a cluster of two tasks and makes them talk to each other.
func startPair(t testing.TB) *server.Cluster {
	t.Helper()
	c, err := server.StartCluster(map[string]int{"worker": 2}, 1)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestReflection reads the descriptions of all methods with gRPC's own messages.
func TestReflection(t *testing.T) {
	s := startPair(t).Server("worker", 0)
	conn := dialGRPC(t, s.Address())
	stream, err := reflectionpb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(req *reflectionpb.ServerReflectionRequest) *reflectionpb.ServerReflectionResponse {
		t.Helper()
		if err := stream.Send(req); err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	listed := map[string]bool{}
	for _, service := range ask(&reflectionpb.ServerReflectionRequest{
		MessageRequest: &reflectionpb.ServerReflectionRequest_ListServices{},
	}).GetListServicesResponse().GetService() {
		listed[service.GetName()] = true
	}
	files := &descriptorpb.FileDescriptorSet{}
	for service := range listed {
		resp := ask(&reflectionpb.ServerReflectionRequest{
			MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: service},
		})
		if text := resp.GetErrorResponse().GetErrorMessage(); text != "" {
			t.Errorf("%s: %s", service, text)
		}
		for _, data := range resp.GetFileDescriptorResponse().GetFileDescriptorProto() {
			f := &descriptorpb.FileDescriptorProto{}
			if err := proto.Unmarshal(data, f); err != nil {
				t.Fatal(err)
			}
			if !hasFile(files, f.GetName()) {
				files.File = append(files.File, f)
			}
		}
	}
	all, err := protodesc.NewFiles(files)
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range s.Methods() {
		service, method, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		if !listed[service] {
			t.Errorf("%s is not listed", service)
		}
		d, err := all.FindDescriptorByName(protoreflect.FullName(service + "." + method))
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		in := d.(protoreflect.MethodDescriptor).Input().FullName() //nolint:forcetypeassert // a name in a service
		if strings.HasPrefix(string(in), "weft.") && !strings.HasPrefix(string(in), "weft.v1.") {
			t.Errorf("%s has the request %s", path, in)
		}
	}
	for symbol, want := range map[string]bool{"tensorflow.GraphDef": true, "weft.tensorflow.GraphDef": false, "nothing.X": false} {
		resp := ask(&reflectionpb.ServerReflectionRequest{
			MessageRequest: &reflectionpb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: symbol},
		})
		if got := resp.GetErrorResponse() == nil; got != want {
			t.Errorf("%s: %v", symbol, resp)
		}
	}
	resp := ask(&reflectionpb.ServerReflectionRequest{MessageRequest: &reflectionpb.ServerReflectionRequest_FileByFilename{FileByFilename: "tensorflow/graph.proto"}})
	if resp.GetErrorResponse() != nil {
		t.Errorf("a file by its name: %v", resp)
	}
	alpha, err := alphapb.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := alpha.Send(&alphapb.ServerReflectionRequest{ //nolint:staticcheck // older programs use it
		MessageRequest: &alphapb.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: "grpc.reflection.v1alpha.ServerReflection"}, //nolint:staticcheck // see above
	}); err != nil {
		t.Fatal(err)
	}
	if resp, err := alpha.Recv(); err != nil || resp.GetFileDescriptorResponse() == nil { //nolint:staticcheck // see above
		t.Errorf("%v, %v", resp, err)
	}
}

func hasFile(files *descriptorpb.FileDescriptorSet, name string) bool {
	for _, f := range files.GetFile() {
		if f.GetName() == name {
			return true
		}
	}
	return false
}

// TestChannelz reads the state of connections with gRPC's own messages.
func TestChannelz(t *testing.T) {
	c := startPair(t)
	conn := dialGRPC(t, c.Server("worker", 0).Address())
	z := channelzpb.NewChannelzClient(conn)
	health := healthpb.NewHealthClient(conn)
	if _, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	if _, err := health.Check(t.Context(), &healthpb.HealthCheckRequest{Service: "none"}); err == nil {
		t.Fatal("there is a service none")
	}
	if err := conn.Invoke(t.Context(), "/weft.v1.Inspection/GetCluster", &healthpb.HealthCheckRequest{}, &healthpb.HealthCheckResponse{}); err != nil {
		t.Fatal(err) // the task has called its peer
	}
	servers, err := z.GetServers(t.Context(), &channelzpb.GetServersRequest{})
	if err != nil || len(servers.GetServer()) != 1 {
		t.Fatalf("%v, %v", servers, err)
	}
	s := servers.GetServer()[0]
	if d := s.GetData(); d.GetCallsStarted() != 4 || d.GetCallsSucceeded() != 2 || d.GetCallsFailed() != 1 {
		t.Errorf("the server is %v", s)
	}
	sockets, err := z.GetServerSockets(t.Context(), &channelzpb.GetServerSocketsRequest{ServerId: s.GetRef().GetServerId()})
	if err != nil || len(sockets.GetSocketRef()) != 1 {
		t.Fatalf("%v, %v", sockets, err)
	}
	socket, err := z.GetSocket(t.Context(), &channelzpb.GetSocketRequest{SocketId: sockets.GetSocketRef()[0].GetSocketId()})
	if err != nil || socket.GetSocket().GetData().GetStreamsStarted() != 6 || len(socket.GetSocket().GetRemote().GetTcpipAddress().GetIpAddress()) != 4 {
		t.Errorf("%v, %v", socket, err)
	}
	channels, err := z.GetTopChannels(t.Context(), &channelzpb.GetTopChannelsRequest{})
	if err != nil || len(channels.GetChannel()) == 0 {
		t.Fatalf("%v, %v", channels, err)
	}
	ch := channels.GetChannel()[0]
	if ch.GetData().GetState().GetState() != channelzpb.ChannelConnectivityState_READY || ch.GetData().GetCallsStarted() == 0 || ch.GetRef().GetName() != c.Server("worker", 1).Address() {
		t.Errorf("the channel is %v", ch)
	}
	sub, err := z.GetSubchannel(t.Context(), &channelzpb.GetSubchannelRequest{SubchannelId: ch.GetSubchannelRef()[0].GetSubchannelId()})
	if err != nil || len(sub.GetSubchannel().GetSocketRef()) != 1 {
		t.Fatalf("%v, %v", sub, err)
	}
	if _, err := z.GetSocket(t.Context(), &channelzpb.GetSocketRequest{SocketId: sub.GetSubchannel().GetSocketRef()[0].GetSocketId()}); err != nil {
		t.Error(err)
	}
	for _, ref := range s.GetListenSocket() {
		if _, err := z.GetSocket(t.Context(), &channelzpb.GetSocketRequest{SocketId: ref.GetSocketId()}); err != nil {
			t.Error(err)
		}
	}
	if _, err := z.GetSocket(t.Context(), &channelzpb.GetSocketRequest{SocketId: 7}); err == nil {
		t.Error("there is a socket 7")
	}
}

// TestMessagesOfGRPC compares the messages of gRPC's services with those of its library.
func TestMessagesOfGRPC(t *testing.T) {
	theirs := map[protoreflect.FileDescriptor]protoreflect.FileDescriptor{
		grpcpb.File_weft_grpc_channelz_proto: channelzpb.File_grpc_channelz_v1_channelz_proto, grpcpb.File_weft_grpc_health_proto: healthpb.File_grpc_health_v1_health_proto,
		grpcpb.File_weft_grpc_reflection_proto: reflectionpb.File_grpc_reflection_v1_reflection_proto,
	}
	for ours, lib := range theirs {
		for i := range ours.Messages().Len() {
			m := ours.Messages().Get(i)
			other := lib.Messages().ByName(m.Name())
			if other == nil {
				t.Errorf("gRPC has no message %s", m.Name())
				continue
			}
			for j := range m.Fields().Len() {
				f := m.Fields().Get(j)
				if g := other.Fields().ByNumber(f.Number()); g == nil || g.Name() != f.Name() || g.Kind() != f.Kind() || g.Cardinality() != f.Cardinality() {
					t.Errorf("%s is %v in gRPC", f.FullName(), g)
				}
			}
		}
	}
}
