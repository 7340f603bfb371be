package server_test

import (
	"log/slog"
	"testing"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/server"
)

// BenchmarkTLS compares connections with and without TLS: a small step over two tasks, and the
// fetch of 64 MiB by a client.
func BenchmarkTLS(b *testing.B) {
	for _, secure := range []bool{false, true} {
		name := map[bool]string{false: "plain", true: "tls"}[secure]
		target, opts := "", []weft.SessionOption{weft.WithNetwork()}
		if secure {
			a := newAuthority(b, "train")
			target = "grpc://" + startSecure(b, a, 2)[0].Address()
			f := a.files(b, clientPrincipal("research", "alice"))
			opts = append(opts, weft.WithTLS(weft.TLS{Cert: f.Cert, Key: f.Key, CA: f.CA}))
		} else {
			c, err := server.StartCluster(map[string]int{"worker": 2}, 1, server.WithLogger(slog.New(slog.DiscardHandler)))
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			target = c.Target("worker", 0)
		}
		c := newCounter()
		g, err := c.graph.Finalize()
		if err != nil {
			b.Fatal(err)
		}
		sess, err := weft.NewSession(target, g, opts...)
		if err != nil {
			b.Fatal(err)
		}
		defer sess.Close()
		if _, err := sess.Fetch(b.Context(), nil, c.init); err != nil {
			b.Fatal(err)
		}
		b.Run("step/"+name, func(b *testing.B) {
			for b.Loop() {
				if _, err := sess.Fetch(b.Context(), nil, c.far); err != nil {
					b.Fatal(err)
				}
			}
		})
		s := op.NewScope()
		here := s.WithDevice("/job:worker/task:0")
		x := op.Fill(here, op.Const(here, []int32{16 << 20}), op.Const(here, float32(3)))
		if g, err = s.Finalize(); err != nil {
			b.Fatal(err)
		}
		large, err := weft.NewSession(target, g, opts...)
		if err != nil {
			b.Fatal(err)
		}
		defer large.Close()
		b.Run("64MiB/"+name, func(b *testing.B) {
			b.SetBytes(64 << 20)
			for b.Loop() {
				out, err := large.Fetch(b.Context(), nil, x)
				if err != nil {
					b.Fatal(err)
				}
				out[0].Release()
			}
		})
	}
}
