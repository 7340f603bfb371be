package grpch2

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// follow opens a call whose response has several messages.
func follow(ctx context.Context, t *testing.T, conn *grpc.ClientConn, path string, in []byte) grpc.ClientStream {
	t.Helper()
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, path)
	if err == nil {
		err = s.SendMsg(&in)
	}
	if err == nil {
		err = s.CloseSend()
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Messages arrive as they are sent, and other calls are served meanwhile.
func TestSend(t *testing.T) {
	resume := make(chan struct{})
	_, address := serve(t, map[string]func(*Call){"/s/Echo": echo, "/s/Messages": func(c *Call) {
		for i, b := range request(c) {
			if i > 0 {
				<-resume
			}
			if err := c.Send(bytes.Repeat([]byte{b}, int(b))); err != nil {
				t.Error(err)
			}
		}
		_ = c.Reply(failure(codeUnavailable, "the end"))
	}})
	conn := reference(t, address)
	s := follow(t.Context(), t, conn, "/s/Messages", []byte{3, 0, 200})
	for i, want := range []int{3, 0, 200} {
		if i > 0 {
			in, out := []byte("x"), []byte(nil)
			if err := conn.Invoke(t.Context(), "/s/Echo", &in, &out); err != nil || string(out) != "x" {
				t.Errorf("concurrent call: %q, %v", out, err)
			}
			resume <- struct{}{}
		}
		var got []byte
		if err := s.RecvMsg(&got); err != nil || len(got) != want {
			t.Errorf("message %d has %d bytes, %v; want %d", i, len(got), err, want)
		}
	}
	var none []byte
	if err := s.RecvMsg(&none); status.Code(err) != codes.Unavailable || status.Convert(err).Message() != "the end" {
		t.Errorf("at the end: got %v", err)
	}
}

// Send returns an error after the caller has cancelled the call.
func TestSendAfterCancellation(t *testing.T) {
	ended := make(chan error)
	_, address := serve(t, map[string]func(*Call){"/s/Endless": func(c *Call) {
		var err error
		for err == nil {
			err = c.Send(make([]byte, 1000))
		}
		<-c.Context().Done()
		_ = c.Reply(failure(codeCancelled, ""))
		ended <- err
	}})
	conn := reference(t, address)
	ctx, cancel := context.WithCancel(t.Context())
	s := follow(ctx, t, conn, "/s/Endless", nil)
	var got []byte
	if err := s.RecvMsg(&got); err != nil {
		t.Error(err)
	}
	cancel()
	if err := <-ended; err == nil {
		t.Error("Send returns no error")
	}
	for {
		if err := s.RecvMsg(&got); err != nil {
			if status.Code(err) != codes.Canceled && !errors.Is(err, io.EOF) {
				t.Errorf("got %v", err)
			}
			return
		}
	}
}
