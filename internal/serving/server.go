// Package serving is a model server: it serves SavedModels with the REST API and the gRPC services
// of TensorFlow Serving, and with the Open Inference Protocol.
//
// The packages below it hold the parts: models (which versions are loaded), servable (one version),
// predict (the services), rest and oip (the APIs over HTTP), jsondoc and jsontensor (JSON).
package serving

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/inspect/metrics"
	"github.com/weft-ml/weft/internal/inspect/tracing"
	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/serving/models"
	"github.com/weft-ml/weft/internal/serving/oip"
	"github.com/weft-ml/weft/internal/serving/predict"
	"github.com/weft-ml/weft/internal/serving/rest"
	"github.com/weft-ml/weft/internal/serving/servable"
	"github.com/weft-ml/weft/internal/serving/stats"
	"github.com/weft-ml/weft/internal/sys/membudget"
	"github.com/weft-ml/weft/internal/transport/connlimit"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/internal/transport/httpcode"
	"github.com/weft-ml/weft/internal/transport/rpc"
	"github.com/weft-ml/weft/status"
)

// Config is the configuration of a server.
type Config struct {
	GRPC []net.Listener // for gRPC
	HTTP []net.Listener // for the REST API, the Open Inference Protocol and metrics
	TLS  *tls.Config    // of gRPC, without Unix sockets; nil for none

	Models     *servingpb.ModelServerConfig
	ConfigFile string        // is read again every ConfigPoll; "" for none
	ConfigPoll time.Duration // 0 for never

	FilePoll      time.Duration // interval at which the folders of models are listed; 0 for once
	LoadThreads   int
	LoadRetries   int
	RetryInterval time.Duration
	EarlyLabels   bool
	WarmUp        bool
	WarmUpTimes   int
	Servable      servable.Options
	// ModelBatching reads the parameters of batching from the folder of each version.
	ModelBatching bool

	RESTTimeout  time.Duration // of a request over HTTP; 0 for none
	CORS         bool
	MaxBody      int64  // size of the largest request over HTTP, in bytes
	MetricsPath  string // "" for no metrics
	CheckMethods bool
	Content      bool
	// Limits are those of gRPC. The limits of connections hold for HTTP as well, whose connections
	// are counted on their own.
	Limits grpch2.Limits
	Grace  time.Duration // time for requests to end after the context of Run has ended

	Tracer *tracing.Tracer // makes spans of requests; nil for none

	Name, Version string // of the program
	Log           *slog.Logger
}

// Server is a model server.
type Server struct {
	config  Config
	models  *models.Manager
	stats   *stats.Stats
	rest    *rest.Handler
	oip     *oip.Server
	grpc    *rpc.Server
	health  *rpc.Health
	http    *http.Server
	conns   *connlimit.Limiter // of HTTP
	started atomic.Bool        // the first models are available
	stopped atomic.Bool
}

// headerTimeout bounds the time in which the headers of an HTTP request must arrive, bodyTimeout
// that of its body and that in which the client takes the answer, and idleTimeout the time of a
// connection without a request.
const (
	headerTimeout = 10 * time.Second
	bodyTimeout   = 10 * time.Minute
	idleTimeout   = 10 * time.Minute
	// maxHeader is the size of the headers of an HTTP request, in bytes.
	maxHeader = 64 << 10
)

// New returns a server. The caller calls Run.
func New(c Config) *Server {
	s := &Server{config: c, stats: stats.New()}
	s.models = models.New(models.Options{
		Load: s.load, Poll: c.FilePoll, LoadThreads: c.LoadThreads, Retries: c.LoadRetries, RetryInterval: c.RetryInterval,
		EarlyLabels: c.EarlyLabels, Log: c.Log,
	})
	api := &predict.API{Models: s.models, Stats: s.stats, CheckMethods: c.CheckMethods, Content: c.Content}
	s.rest = &rest.Handler{API: api, Timeout: c.RESTTimeout, CORS: c.CORS, MaxBody: c.MaxBody}
	s.oip = &oip.Server{
		API: api, Name: c.Name, Version: c.Version, Timeout: c.RESTTimeout, MaxBody: c.MaxBody,
		Stopping: func() bool { return !s.started.Load() || s.stopped.Load() },
	}
	s.grpc = rpc.NewServer(rpc.NewReceiveLimiter(nil), c.Log)
	s.grpc.Limits = c.Limits
	if c.TLS != nil {
		s.grpc.Secure = func(nc net.Conn) net.Conn {
			if _, local := nc.(*net.UnixConn); local {
				return nc
			}
			return secureConn{tls.Server(nc, c.TLS)}
		}
	}
	s.http = &http.Server{
		Handler: s, ReadHeaderTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(c.Log.Handler(), slog.LevelWarn),
	}
	s.conns = &connlimit.Limiter{Limits: c.Limits, Refusal: refusal, Log: c.Log}
	if c.Tracer != nil {
		s.grpc.Tracer = c.Tracer
		s.http.Handler = c.Tracer.HTTP(s, route)
	}
	api.Register(s.grpc, c.Log)
	s.oip.Register(s.grpc, c.Log)
	s.health = rpc.RegisterHealth(s.grpc, "PredictionService", "ModelService", predict.PredictionService, predict.ModelService)
	rpc.RegisterReflection(s.grpc, c.Log)
	rpc.RegisterChannelz(s.grpc, c.Log)
	return s
}

// load loads a version and warms it up.
func (s *Server) load(ctx context.Context, model string, version int64, dir string) (*servable.Servable, error) {
	opts := s.config.Servable
	if s.config.ModelBatching {
		batching, err := modelBatching(dir)
		if err != nil {
			return nil, err
		}
		opts.Batching = batching
	}
	start := time.Now()
	v, err := servable.Load(ctx, dir, opts)
	outcome := "success"
	if err != nil {
		outcome = "fail"
	}
	s.stats.Add(":tensorflow:cc:saved_model:load_attempt_count", "The number of times a SavedModel was loaded.", 1, "model_path", dir, "status", outcome)
	if err != nil {
		return nil, err
	}
	s.stats.Add(":tensorflow:cc:saved_model:load_latency", "Total time of loading a SavedModel, in microseconds.",
		uint64(time.Since(start).Microseconds()), "model_path", dir) //nolint:gosec // not negative
	if !s.config.WarmUp {
		return v, nil
	}
	start = time.Now()
	records, err := v.WarmUp(ctx, max(1, s.config.WarmUpTimes))
	if err != nil {
		_ = v.Close() // the first error is the cause
		return nil, err
	}
	if records > 0 {
		s.config.Log.Info("a version of a model is warm", "model", model, "version", version, "records", records)
		s.stats.Observe(stats.Prefix+"model_warmup_latency", "Distribution of the time of warm-up, in microseconds.",
			float64(time.Since(start).Microseconds()), "model_path", dir, "status", "OK")
		s.stats.Add(stats.Prefix+"model_warmup_records_read", "The number of warm-up records.", uint64(records), "model_path", dir) //nolint:gosec // not negative
	}
	return v, nil
}

// ServeHTTP implements [http.Handler]. A panic is an internal error of its request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	defer func() {
		var err error
		switch v := recover().(type) {
		case nil:
			return
		case *membudget.Exceeded:
			err = status.ResourceExhaustedf("there is no memory for %d more bytes of a request (--memory-limit)", v.Bytes)
		default:
			s.config.Log.Error("panic in a handler", "path", r.URL.Path, "panic", v, "stack", string(debug.Stack()))
			err = status.Internalf("panic while serving %s: %v", r.URL.Path, v)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(httpcode.Of(status.CodeOf(err)))
		_, _ = w.Write(rest.ErrorBody(err)) // the client has gone if that fails
	}()
	// these fail in tests, which have no connection
	control, now := http.NewResponseController(w), time.Now()
	_ = control.SetReadDeadline(now.Add(bodyTimeout))
	_ = control.SetWriteDeadline(now.Add(2*bodyTimeout + s.config.RESTTimeout))
	switch path := r.URL.Path; {
	case s.config.MetricsPath != "" && path == s.config.MetricsPath && (r.Method == http.MethodGet || r.Method == http.MethodHead):
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = s.stats.WriteTo(w) // the client has gone if that fails
		_, _ = w.Write(metrics.AppendLimited(nil, s.limited()))
	case rest.IsPath(r.RequestURI):
		s.rest.ServeHTTP(w, r)
	case oip.IsPath(path):
		s.oip.ServeHTTP(w, r)
	case s.serveDescription(w, r):
	default:
		http.NotFound(w, r)
	}
}

// refusal returns the response of HTTP to a client whose connection is refused.
func refusal(why string) []byte {
	body := rest.ErrorBody(status.ResourceExhaustedf("%s", why))
	return append(fmt.Appendf(nil, "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n",
		len(body)), body...)
}

// limited returns how often clients have reached each limit.
func (s *Server) limited() map[string]uint64 {
	all := s.grpc.Limited()
	for name, n := range s.conns.Limited() {
		all[name] += n
	}
	return all
}

// Run serves until ctx ends, and then waits for the requests in progress, at most for the grace
// period. It returns an error if the first models cannot be loaded.
func (s *Server) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var serving sync.WaitGroup
	for _, l := range s.config.GRPC {
		serving.Go(func() {
			if err := s.grpc.Serve(l); !errors.Is(err, rpc.ErrServerStopped) {
				cancel(status.Unavailablef("gRPC: %w", err))
			}
		})
	}
	for _, l := range s.config.HTTP {
		serving.Go(func() {
			if err := s.http.Serve(s.conns.Listener(l)); !errors.Is(err, http.ErrServerClosed) {
				cancel(status.Unavailablef("HTTP: %w", err))
			}
		})
	}
	err := s.models.Apply(ctx, s.config.Models)
	if err == nil {
		s.started.Store(true)
		s.health.SetServing(true)
		if absent := s.models.Absent(); len(absent) > 0 {
			s.config.Log.Warn("serving, without models that have no version yet", "models", absent)
		} else {
			s.config.Log.Info("all models are available")
		}
		s.watchConfig(ctx)
	}
	if ctx.Err() != nil {
		if err = context.Cause(ctx); errors.Is(err, context.Canceled) {
			err = nil
		}
	}
	s.stop()
	serving.Wait()
	return err
}

// stop waits for the requests in progress and unloads all models.
func (s *Server) stop() {
	s.stopped.Store(true)
	s.health.SetServing(false)
	s.health.Close()
	ctx, cancel := context.WithTimeout(context.Background(), s.config.Grace)
	defer cancel()
	var stopping sync.WaitGroup
	stopping.Go(func() {
		if s.http.Shutdown(ctx) != nil {
			s.http.Close()
		}
		s.conns.Close()
	})
	stopping.Go(func() {
		stop := context.AfterFunc(ctx, s.grpc.Close)
		defer stop()
		s.grpc.Shutdown()
	})
	stopping.Wait()
	s.models.Close()
}

// watchConfig reads the configuration file again and again until ctx ends.
func (s *Server) watchConfig(ctx context.Context) {
	if s.config.ConfigFile == "" || s.config.ConfigPoll <= 0 {
		<-ctx.Done()
		return
	}
	last, _ := fileio.Files{}.In(ctx).Read(s.config.ConfigFile)
	ticker := time.NewTicker(s.config.ConfigPoll)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		text, err := fileio.Files{}.In(ctx).Read(s.config.ConfigFile)
		if err == nil && string(text) == string(last) {
			continue
		}
		var config *servingpb.ModelServerConfig
		if err == nil {
			last = text
			config, err = models.ParseConfig(text)
		}
		if err == nil {
			err = s.models.Apply(ctx, config)
		}
		if err != nil && ctx.Err() == nil {
			s.config.Log.Error("the configuration of models was not applied", "file", s.config.ConfigFile, "error", err)
		}
	}
}
