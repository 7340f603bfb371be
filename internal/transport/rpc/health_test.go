package rpc

import (
	"bytes"
	"context"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/weft-ml/weft/status"
)

// A long request of the health service is refused, and gives back its memory: everybody may call
// the service, and messages that arrive may take half of the memory.
func TestLongHealthRequests(t *testing.T) {
	var limiter *ReceiveLimiter
	conn := serveWith(t, func(s *Server) {
		RegisterHealth(s).SetServing(true)
		limiter = s.limiter
	})
	request := func(service []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), service)
	}
	if err := invokeRaw(t.Context(), conn, methodHealth, request([]byte(MasterService))); err != nil {
		t.Fatal(err)
	}
	long := request(bytes.Repeat([]byte("x"), 8<<20))
	for _, method := range []string{methodHealth, methodHealthWatch} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		err := invokeRaw(ctx, conn, method, long)
		cancel()
		if status.CodeOf(err) != status.Internal || len(err.Error()) > maxErrorText {
			t.Errorf("%s: %.200v", method, err)
		}
	}
	if n := limiter.reading.Load(); n != 0 {
		t.Errorf("%d bytes count as being received", n)
	}
}
