package rpc

import (
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/weft-ml/weft/internal/proto/grpcpb"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/status"
)

// Reflection services, of both versions, which have the same messages.
const (
	reflectionPackage = "grpc.reflection.v1"
	reflectionV1      = reflectionPackage + ".ServerReflection"
	reflectionAlpha   = reflectionPackage + "alpha.ServerReflection"
	reflectionInfo    = "/ServerReflectionInfo"
	alphaFile         = "grpc/reflection_v1alpha.proto"
)

// RegisterReflection registers the services that describe the methods of a server, for programs
// such as grpcurl.
func RegisterReflection(s *Server, log *slog.Logger) {
	for _, service := range []string{reflectionV1, reflectionAlpha} {
		path := "/" + service + reflectionInfo
		s.Handle(path, grpch2.Method{
			NewBody: s.limiter.newBody(nil), Streaming: true, Audience: grpch2.Clients,
			Serve: func(c *grpch2.Call) {
				defer replyToPanic(c, log, path)
				s.reflect(c)
			},
		})
	}
}

// reflect answers the questions of a stream.
func (s *Server) reflect(c *grpch2.Call) {
	sent := map[string]bool{}
	for {
		body, err := c.Next()
		switch {
		case errors.Is(err, io.EOF):
			_ = c.Reply(grpch2.Outcome{})
			return
		case err != nil:
			_ = c.Reply(failed(status.Cancelledf("the caller has gone")))
			return
		}
		req := &grpcpb.ServerReflectionRequest{}
		if err := receive(body, req); err != nil {
			_ = c.Reply(failed(requestError(err)))
			return
		}
		answer, err := encode(s.describe(req, sent)) // with the request, which may be long
		if err != nil {
			_ = c.Reply(failed(status.From(err)))
			return
		}
		if c.Send(answer.data...) != nil {
			_ = c.Reply(failed(status.Cancelledf("the caller has gone")))
			return
		}
	}
}

// describe answers a question. sent has the names of the files that the caller has.
func (s *Server) describe(req *grpcpb.ServerReflectionRequest, sent map[string]bool) *grpcpb.ServerReflectionResponse {
	resp := &grpcpb.ServerReflectionResponse{ValidHost: req.GetHost(), OriginalRequest: req}
	switch q := req.GetMessageRequest().(type) {
	case *grpcpb.ServerReflectionRequest_ListServices:
		list := &grpcpb.ListServiceResponse{}
		for _, name := range s.services() {
			list.Service = append(list.Service, &grpcpb.ServiceResponse{Name: name})
		}
		resp.MessageResponse = &grpcpb.ServerReflectionResponse_ListServicesResponse{ListServicesResponse: list}
		return resp
	case *grpcpb.ServerReflectionRequest_FileByFilename:
		if f, alpha, err := fileNamed(q.FileByFilename); err == nil {
			resp.MessageResponse = filesOf(f, alpha, sent)
			return resp
		}
	case *grpcpb.ServerReflectionRequest_FileContainingSymbol:
		if f, alpha, err := fileWith(q.FileContainingSymbol); err == nil {
			resp.MessageResponse = filesOf(f, alpha, sent)
			return resp
		}
	case *grpcpb.ServerReflectionRequest_AllExtensionNumbersOfType:
		if _, _, err := fileWith(q.AllExtensionNumbersOfType); err == nil {
			// there are no extensions
			none := &grpcpb.ExtensionNumberResponse{BaseTypeName: q.AllExtensionNumbersOfType}
			resp.MessageResponse = &grpcpb.ServerReflectionResponse_AllExtensionNumbersResponse{AllExtensionNumbersResponse: none}
			return resp
		}
	}
	resp.MessageResponse = &grpcpb.ServerReflectionResponse_ErrorResponse{
		ErrorResponse: &grpcpb.ErrorResponse{ErrorCode: int32(status.NotFound), ErrorMessage: "not found"},
	}
	return resp
}

// services returns the names of the services, sorted.
func (s *Server) services() []string {
	var out []string
	for _, path := range s.Paths() {
		service, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
		out = append(out, service)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// The packages of this project's messages begin with "weft.", and so do the names of the files.
// Callers see the names that are used on the network: without it, except in this project's own
// package weft.v1.

const ownPrefix, ownPackage = "weft", "weft.v1"

// publicName returns the name that callers see: "tensorflow.GraphDef" for
// "weft.tensorflow.GraphDef".
func publicName(name string) string {
	rest, ok := strings.CutPrefix(name, ownPrefix+".")
	if !ok || name == ownPackage || strings.HasPrefix(name, ownPackage+".") {
		return name
	}
	return rest
}

func publicFile(name string) string {
	rest, ok := strings.CutPrefix(name, ownPrefix+"/")
	if !ok || strings.HasPrefix(rest, "v1/") {
		return name
	}
	return rest
}

// fileNamed returns the file of a public name. alpha reports that the package of reflection gets
// its older name.
func fileNamed(name string) (f protoreflect.FileDescriptor, alpha bool, err error) {
	if name == alphaFile {
		f, err = protoregistry.GlobalFiles.FindFileByPath(ownPrefix + "/grpc/reflection.proto")
		return f, true, err
	}
	for _, path := range []string{ownPrefix + "/" + name, name} {
		if f, err = protoregistry.GlobalFiles.FindFileByPath(path); err == nil && publicFile(path) == name {
			return f, false, nil
		}
	}
	return nil, false, protoregistry.NotFound
}

// fileWith returns the file that declares a symbol with a public name.
func fileWith(symbol string) (f protoreflect.FileDescriptor, alpha bool, err error) {
	if rest, ok := strings.CutPrefix(symbol, reflectionPackage+"alpha."); ok {
		symbol, alpha = reflectionPackage+"."+rest, true
	}
	for _, name := range []string{ownPrefix + "." + symbol, symbol} {
		if d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName(name)); err == nil && publicName(name) == symbol {
			return d.ParentFile(), alpha, nil
		}
	}
	return nil, false, protoregistry.NotFound
}

// filesOf returns a file and all that it imports, without those that were sent before.
func filesOf(f protoreflect.FileDescriptor, alpha bool, sent map[string]bool) *grpcpb.ServerReflectionResponse_FileDescriptorResponse {
	out := &grpcpb.FileDescriptorResponse{}
	var add func(f protoreflect.FileDescriptor, again bool)
	add = func(f protoreflect.FileDescriptor, again bool) {
		d := publicDescriptor(f, alpha)
		if sent[d.GetName()] && !again {
			return
		}
		sent[d.GetName()] = true
		if data, err := proto.Marshal(d); err == nil { // it cannot fail
			out.FileDescriptorProto = append(out.FileDescriptorProto, data)
		}
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor, false)
		}
	}
	add(f, true)
	return &grpcpb.ServerReflectionResponse_FileDescriptorResponse{FileDescriptorResponse: out}
}

// publicDescriptor returns the description of a file with public names.
func publicDescriptor(f protoreflect.FileDescriptor, alpha bool) *descriptorpb.FileDescriptorProto {
	d := protodesc.ToFileDescriptorProto(f)
	public := func(name *string) *string {
		if name == nil {
			return nil
		}
		out := publicName(strings.TrimPrefix(*name, "."))
		if alpha {
			out = strings.Replace(out, reflectionPackage, reflectionPackage+"alpha", 1)
		}
		if strings.HasPrefix(*name, ".") {
			out = "." + out
		}
		return &out
	}
	d.Name, d.Package = new(publicFile(d.GetName())), public(d.Package)
	if alpha {
		d.Name = new(alphaFile)
	}
	for i, name := range d.Dependency {
		d.Dependency[i] = publicFile(name)
	}
	for _, service := range d.Service {
		for _, m := range service.Method {
			m.InputType, m.OutputType = public(m.InputType), public(m.OutputType)
		}
	}
	renameTypes(d.MessageType, public)
	return d
}

// renameTypes changes the types of the fields of messages.
func renameTypes(messages []*descriptorpb.DescriptorProto, public func(*string) *string) {
	for _, m := range messages {
		for _, f := range m.Field {
			f.TypeName = public(f.TypeName)
		}
		renameTypes(m.NestedType, public)
	}
}
