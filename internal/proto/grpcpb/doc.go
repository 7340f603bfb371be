// Package grpcpb contains the messages of gRPC's own services: health, reflection and channelz.
//
// The sources are in proto/weft/grpc. Names and numbers of fields are those of gRPC, and the proto
// packages are gRPC's with the prefix "weft.", so that a program may link gRPC's library, too.
package grpcpb
