package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"strings"
	"sync"

	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/encoding/protowire"
)

// relay connects one client connection to one server connection. It encodes all header blocks anew,
// because HPACK blocks depend on earlier ones and not all are forwarded.
type relay struct {
	client, server net.Conn

	// Fields of the goroutine that reads from the client.
	calls map[uint32]*call
	taken int // bytes of DATA not forwarded since the last connection WINDOW_UPDATE to the client

	mu       sync.Mutex
	window   uint32             // the server's initial stream window; guarded by mu
	learning map[uint32]*answer // responses being recorded, by stream; guarded by mu
	known    map[string]*answer // recorded responses, by kind of call; guarded by mu
}

// beginning is the number of bytes of each DATA frame that are kept to find the session handle,
// which is near the start of a message.
const beginning = 256

// call is a call whose request is not complete yet.
type call struct {
	headers []byte // frames not forwarded yet
	begin   []byte // start of the message
	path    string
	answer  *answer // recorded response, or nil
}

// answer is the response of the server to one kind of call.
type answer struct {
	kind   string
	frames []byte
	starts []int // offset of each frame
}

func newRelay(client, server net.Conn) *relay {
	return &relay{
		client: client, server: server, calls: map[uint32]*call{}, window: 65535, learning: map[uint32]*answer{}, known: map[string]*answer{},
	}
}

func (r *relay) run() {
	var both sync.WaitGroup
	for _, pass := range []func() error{r.fromClient, r.fromServer} {
		both.Go(func() {
			if err := pass(); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, net.ErrClosed) {
				fmt.Fprintln(os.Stderr, "nullserver:", err)
			}
			r.client.Close()
			r.server.Close()
		})
	}
	both.Wait()
}

const preface = 24 // length of the client connection preface

func (r *relay) fromClient() error {
	in := bufio.NewReaderSize(r.client, 16<<10)
	if _, err := io.CopyN(r.server, in, preface); err != nil {
		return err
	}
	blocks := hpack.NewDecoder(4096, nil)
	var f frame
	for {
		if err := f.read(in); err != nil {
			return err
		}
		if err := r.take(&f, blocks); err != nil {
			return err
		}
	}
}

// take handles a frame from the client.
func (r *relay) take(f *frame, blocks *hpack.Decoder) error {
	c := r.calls[f.stream]
	switch {
	case f.kind == headers:
		fields, err := f.fields(blocks)
		if err != nil {
			return err
		}
		c = &call{headers: appendHeaders(nil, f, fields)}
		for _, field := range fields {
			if field.Name == ":path" {
				c.path = field.Value
			}
		}
		r.calls[f.stream] = c
		if isStep(c.path) {
			return nil // decided when the message arrives
		}
	case f.kind == data && c != nil && c.headers != nil:
		c.begin = append(c.begin, f.payload()[:min(len(f.payload()), beginning)]...)
		if session(c.begin) == "" && !f.ends() { // decided with the next frame
			c.headers = append(c.headers, f.bytes...)
			return nil
		}
		r.decide(c, f)
	case c != nil && c.headers != nil: // a WINDOW_UPDATE of a step
		c.headers = append(c.headers, f.bytes...)
		return nil
	case f.kind == data && c == nil, f.kind == settings || f.stream == 0:
		return r.pass(f)
	case c == nil: // the end of a call that the server may not know
		return nil
	}
	if c.answer != nil {
		return r.reply(c.answer, f)
	}
	if c.headers != nil {
		if _, err := r.server.Write(c.headers); err != nil {
			return err
		}
		c.headers = nil
	}
	if f.ends() {
		delete(r.calls, f.stream)
	}
	if f.kind == headers {
		return nil
	}
	return r.pass(f)
}

func isStep(path string) bool {
	return strings.HasSuffix(path, "/RunStep") || strings.HasSuffix(path, "/RunCallable")
}

// decide selects the recorded response for a step whose message has begun, or starts recording it.
func (r *relay) decide(c *call, f *frame) {
	kind := c.path + " " + session(c.begin)
	r.mu.Lock()
	defer r.mu.Unlock()
	if c.answer = r.known[kind]; c.answer == nil {
		r.learning[f.stream] = &answer{kind: kind}
	}
}

// session returns the session handle in a request: its first field, after the five bytes of gRPC's
// message prefix.
func session(message []byte) string {
	const prefix = 5
	if len(message) < prefix {
		return ""
	}
	if number, kind, n := protowire.ConsumeTag(message[prefix:]); number == 1 && kind == protowire.BytesType {
		if handle, n := protowire.ConsumeString(message[prefix+n:]); n > 0 {
			return handle
		}
	}
	return ""
}

// reply sends the response if f ends the request. It also sends the WINDOW_UPDATE frames that the
// server would send.
func (r *relay) reply(a *answer, f *frame) error {
	const wide = 1 << 29 // windows above this size never run out within a request
	r.taken += len(f.payload())
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []byte
	if n := uint32(len(f.payload())); n > 0 && r.window < wide {
		out = appendWindowUpdate(appendWindowUpdate(out, 0, n), f.stream, n)
	} else if r.taken >= wide {
		out = appendWindowUpdate(out, 0, uint32(r.taken))
		r.taken = 0
	}
	if f.ends() {
		delete(r.calls, f.stream)
		begin := len(out)
		out = append(out, a.frames...)
		for _, at := range a.starts {
			putStream(out[begin+at:], f.stream)
		}
	}
	if len(out) == 0 {
		return nil
	}
	_, err := r.client.Write(out)
	return err
}

func (r *relay) pass(f *frame) error {
	_, err := r.server.Write(f.bytes)
	return err
}

func (r *relay) fromServer() error {
	in := bufio.NewReaderSize(r.server, 16<<10)
	blocks := hpack.NewDecoder(4096, nil)
	var f frame
	for {
		if err := f.read(in); err != nil {
			return err
		}
		out := f.bytes
		if f.kind == headers {
			fields, err := f.fields(blocks)
			if err != nil {
				return err
			}
			out = appendHeaders(nil, &f, fields)
		}
		if err := r.answer(&f, out); err != nil {
			return err
		}
	}
}

// answer forwards a frame from the server to the client and records it if necessary.
func (r *relay) answer(f *frame, out []byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if f.kind == settings {
		r.window = f.initialWindow(r.window)
	}
	if a := r.learning[f.stream]; a != nil && (f.kind == headers || f.kind == data) {
		a.starts = append(a.starts, len(a.frames))
		a.frames = append(a.frames, out...)
		if f.ends() {
			r.known[a.kind] = a
			maps.DeleteFunc(r.learning, func(_ uint32, other *answer) bool { return other == a })
		}
	}
	_, err := r.client.Write(out)
	return err
}
