package main

import (
	"context"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/internal/inspect/otlp"
	"github.com/weft-ml/weft/internal/inspect/tracing"
	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/serving"
	"github.com/weft-ml/weft/internal/serving/models"
	"github.com/weft-ml/weft/internal/serving/servable"
	"github.com/weft-ml/weft/internal/sys/buildinfo"
	"github.com/weft-ml/weft/internal/sys/memlimit"
	"github.com/weft-ml/weft/internal/transport/grpch2"
	"github.com/weft-ml/weft/internal/transport/rpc"
	_ "github.com/weft-ml/weft/local" // the target of models
)

// serveFlags are the flags of weft serve, with TensorFlow Serving's names.
type serveFlags struct {
	port, restPort      int
	host                string
	insecure            bool
	socket              string
	restTimeout         int // in milliseconds
	cors                bool
	modelName, basePath string
	configFile          string
	configPoll          int // in seconds
	filePoll            int // in seconds
	loadThreads         int
	loadRetries         int
	retryInterval       int64 // in microseconds
	tags                string
	batching            bool
	batchingFile        string
	modelBatching       bool
	warmUp              bool
	warmUpTimes         int
	earlyLabels         bool
	checkMethods        bool
	content             bool
	monitoringFile      string
	sslFile             string
	maxRequest          byteSize
	memoryLimit         byteSize
	limits              grpch2.Limits
	grace               time.Duration
	log                 logFlags
}

// defaultRESTPort is the port of the REST API if a folder is given as argument.
const defaultRESTPort = 8501

func newServe() *cobra.Command {
	f := serveFlags{maxRequest: 2<<30 - 1}
	cmd := &cobra.Command{
		Use:   "serve [MODEL_DIR]",
		Short: "Serve trained models with the APIs of TensorFlow Serving",
		Long: "Serve SavedModels until the process receives SIGINT or SIGTERM, with the REST API and the gRPC services of TensorFlow Serving, " +
			"and with the Open Inference Protocol. MODEL_DIR is a SavedModel, or a folder with one folder for each version of a model. " +
			"Its base name is the name of the model. The flags and the files that they name are those of tensorflow_model_server.",
		Example: "  weft serve /models/digits\n  weft serve --rest_api_port=8501 --model_config_file=/models/models.config",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := f.config(cmd, args)
			if err != nil {
				return usageError{err}
			}
			return f.serve(cmd.Context(), cmd, config)
		},
	}
	f.add(cmd.Flags())
	return cmd
}

func (f *serveFlags) add(flags *pflag.FlagSet) {
	flags.IntVar(&f.port, "port", 8500, "port of gRPC; 0 for none, with --grpc_socket_path")
	flags.IntVar(&f.restPort, "rest-api-port", 0, "port of the REST API and the other services over HTTP; 0 for none (default 8501 with MODEL_DIR)")
	flags.StringVar(&f.host, "host", "127.0.0.1", "address to listen on; 0.0.0.0 or :: for all, with --insecure")
	flags.BoolVar(&f.insecure, "insecure", false, "listen on an address other than loopback, where any host that can reach it can use the models")
	flags.StringVar(&f.socket, "grpc-socket-path", "", "Unix socket for gRPC")
	flags.IntVar(&f.restTimeout, "rest-api-timeout-in-ms", 30000, "time limit of a request over HTTP, in milliseconds")
	flags.BoolVar(&f.cors, "rest-api-enable-cors-support", false, "let pages of any origin use the REST API")
	flags.StringVar(&f.modelName, "model-name", "default", "name of the model (default with MODEL_DIR: its base name)")
	flags.StringVar(&f.basePath, "model-base-path", "", "folder of the model, instead of MODEL_DIR")
	flags.StringVar(&f.configFile, "model-config-file", "", "file with a ModelServerConfig in text form, for several models")
	flags.IntVar(&f.configPoll, "model-config-file-poll-wait-seconds", 0, "interval at which --model_config_file is read again; 0 for never")
	flags.IntVar(&f.filePoll, "file-system-poll-wait-seconds", 1, "interval at which the folders of models are listed; 0 for once")
	flags.IntVar(&f.loadThreads, "num-load-threads", 0, "number of models that are loaded at the same time; 0 for one")
	flags.IntVar(&f.loadRetries, "max-num-load-retries", 5, "further attempts to load a version after one that failed")
	flags.Int64Var(&f.retryInterval, "load-retry-interval-micros", 60_000_000, "time between attempts to load a version, in microseconds")
	flags.StringVar(&f.tags, "saved-model-tags", "serve", "tags of the MetaGraph to load, separated by commas")
	flags.BoolVar(&f.batching, "enable-batching", false, "merge concurrent requests")
	flags.StringVar(&f.batchingFile, "batching-parameters-file", "", "file with BatchingParameters in text form")
	flags.BoolVar(&f.modelBatching, "enable-per-model-batching-parameters", false, "read the parameters of batching from batching_params.pbtxt in the folder of each version")
	flags.BoolVar(&f.warmUp, "enable-model-warmup", true, "run the recorded requests in assets.extra of a version before it is used")
	flags.IntVar(&f.warmUpTimes, "num-request-iterations-for-warmup", 1, "how often each recorded request runs")
	flags.BoolVar(&f.earlyLabels, "allow-version-labels-for-unavailable-models", false, "allow new labels for versions that are not available yet")
	flags.BoolVar(&f.checkMethods, "enable-signature-method-name-check", false, "refuse signatures whose method is not that of the request")
	flags.BoolVar(&f.content, "enable-serialization-as-tensor-content", false, "return elements as bytes in tensor_content")
	flags.StringVar(&f.monitoringFile, "monitoring-config-file", "", "file with a MonitoringConfig in text form, for metrics")
	flags.StringVar(&f.sslFile, "ssl-config-file", "", "file with an SSLConfig in text form, for TLS of gRPC")
	flags.Var(&f.maxRequest, "max-request-size", "size of the largest request over HTTP")
	memoryLimitFlag(flags, &f.memoryLimit, "requests and models")
	connectionFlags(flags, &f.limits, " of gRPC, and as many of HTTP")
	drainFlags(flags, &f.grace, "requests")
	f.log.add(flags, "details of models, too")
	without(flags)
}

// without adds flags of TensorFlow Serving that have no effect here.
func without(flags *pflag.FlagSet) {
	for _, name := range []string{"flush-filesystem-caches", "remove-unused-fields-from-bundle-metagraph", "prefer-tflite-model", "enable-grpc-healthcheck-service", "enable-profiler"} {
		flags.Bool(name, false, "has no effect")
		_ = flags.MarkHidden(name) // the flag exists
	}
	for _, name := range []string{
		"num-unload-threads", "rest-api-num-threads", "grpc-max-threads", "tensorflow-session-parallelism", "tensorflow-intra-op-parallelism",
		"tensorflow-inter-op-parallelism", "per-process-gpu-memory-fraction", "tensorflow-session-config-file", "platform-config-file",
		"grpc-channel-arguments", "mixed-precision",
	} {
		flags.String(name, "", "has no effect")
		_ = flags.MarkHidden(name) // the flag exists
	}
}

// config returns the configuration of the server, without its listeners.
func (f *serveFlags) config(cmd *cobra.Command, args []string) (serving.Config, error) {
	c := serving.Config{
		ConfigFile: f.configFile, ConfigPoll: seconds(f.configPoll), FilePoll: seconds(f.filePoll),
		LoadThreads: f.loadThreads, LoadRetries: f.loadRetries, RetryInterval: time.Duration(f.retryInterval) * time.Microsecond,
		EarlyLabels: f.earlyLabels, WarmUp: f.warmUp, WarmUpTimes: f.warmUpTimes, ModelBatching: f.modelBatching,
		RESTTimeout: time.Duration(f.restTimeout) * time.Millisecond, CORS: f.cors, MaxBody: int64(f.maxRequest),
		CheckMethods: f.checkMethods, Content: f.content, Limits: f.limits, Grace: f.grace, Name: "weft", Version: buildinfo.Read().Version,
		Servable: servable.Options{Tags: strings.Split(f.tags, ",")},
	}
	if !f.batching && f.batchingFile != "" {
		return c, fmt.Errorf("--batching_parameters_file needs --enable_batching")
	}
	var err error
	if f.sslFile != "" {
		if c.TLS, err = serving.ReadTLS(f.sslFile); err != nil {
			return c, fmt.Errorf("--ssl_config_file: %w", err)
		}
	}
	if c.Models, err = f.models(cmd, args); err != nil {
		return c, err
	}
	if f.batching {
		var text []byte
		if f.batchingFile != "" {
			if text, err = (fileio.Files{}).Read(f.batchingFile); err != nil {
				return c, fmt.Errorf("--batching_parameters_file: %w", err)
			}
		}
		if c.Servable.Batching, err = serving.ParseBatching(text); err != nil {
			return c, fmt.Errorf("--batching_parameters_file: %w", err)
		}
	}
	if f.monitoringFile != "" {
		if c.MetricsPath, err = metricsPath(f.monitoringFile); err != nil {
			return c, fmt.Errorf("--monitoring_config_file: %w", err)
		}
	}
	return c, nil
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// models returns the models that the flags name.
func (f *serveFlags) models(cmd *cobra.Command, args []string) (*servingpb.ModelServerConfig, error) {
	name, path := f.modelName, f.basePath
	if len(args) == 1 {
		if path != "" {
			return nil, fmt.Errorf("MODEL_DIR and --model_base_path are both given")
		}
		abs, err := fileio.Abs(args[0])
		if err != nil {
			return nil, err
		}
		if path = abs; !cmd.Flags().Changed("model-name") {
			name = fileio.Base(path)
		}
		if !cmd.Flags().Changed("rest-api-port") {
			f.restPort = defaultRESTPort
		}
	}
	switch {
	case f.configFile != "" && path != "":
		return nil, fmt.Errorf("a model and --model_config_file are both given")
	case f.configFile != "":
		text, err := fileio.Files{}.Read(f.configFile)
		if err != nil {
			return nil, fmt.Errorf("--model_config_file: %w", err)
		}
		return serving.ParseConfig(text)
	case path == "":
		return nil, fmt.Errorf("no model is given: use MODEL_DIR, --model_base_path or --model_config_file (see '%s --help')", cmd.CommandPath())
	}
	return &servingpb.ModelServerConfig{Config: &servingpb.ModelServerConfig_ModelConfigList{ModelConfigList: &servingpb.ModelConfigList{
		Config: []*servingpb.ModelConfig{{Name: name, BasePath: path, ModelPlatform: models.Platform}},
	}}}, nil
}

// defaultMetricsPath is the path of metrics if the configuration names none.
const defaultMetricsPath = "/monitoring/prometheus/metrics"

// metricsPath returns the path of metrics in a configuration, "" if they are off.
func metricsPath(file string) (string, error) {
	text, err := fileio.Files{}.Read(file)
	if err != nil {
		return "", err
	}
	config := &servingpb.MonitoringConfig{}
	if err := prototext.Unmarshal(text, config); err != nil {
		return "", err
	}
	switch p := config.GetPrometheusConfig(); {
	case !p.GetEnable():
		return "", nil
	case p.GetPath() == "":
		return defaultMetricsPath, nil
	default:
		return p.GetPath(), nil
	}
}

func (f *serveFlags) serve(ctx context.Context, cmd *cobra.Command, c serving.Config) error {
	setSysmonTimerSlack()
	c.Log = f.log.logger(cmd.ErrOrStderr())
	memlimit.Set(int64(f.memoryLimit))
	c.LoadThreads = max(1, min(c.LoadThreads, runtime.NumCPU()))
	traces, err := otlp.Start(net.JoinHostPort(f.host, strconv.Itoa(f.port)), c.Log)
	if err != nil {
		return usageError{err}
	}
	defer traces.Close()
	if traces != nil {
		c.Tracer = tracing.New(traces)
	}
	if err := f.listen(&c); err != nil {
		for _, l := range append(c.GRPC, c.HTTP...) {
			l.Close()
		}
		return err
	}
	for _, l := range c.GRPC {
		fmt.Fprintf(cmd.OutOrStdout(), "weft %s serves gRPC at %s\n", buildinfo.Read().Version, l.Addr())
	}
	for _, l := range c.HTTP {
		fmt.Fprintf(cmd.OutOrStdout(), "weft %s serves HTTP at http://%s\n", buildinfo.Read().Version, l.Addr())
	}
	return serving.New(c).Run(ctx)
}

// listen opens the listeners.
func (f *serveFlags) listen(c *serving.Config) error {
	if f.port == 0 && f.socket == "" {
		return usageError{fmt.Errorf("--port=0 needs --grpc_socket_path")}
	}
	for _, on := range []struct {
		port int
		to   *[]net.Listener
	}{{f.port, &c.GRPC}, {f.restPort, &c.HTTP}} {
		if on.port == 0 {
			continue
		}
		address, err := net.ResolveTCPAddr("tcp", net.JoinHostPort(f.host, strconv.Itoa(on.port)))
		if err != nil {
			return usageError{fmt.Errorf("--host: %w", err)}
		}
		if !f.insecure && !address.IP.IsLoopback() {
			return usageError{fmt.Errorf("--host: other machines can reach %s; --insecure allows it on a trusted network", address)}
		}
		l, err := rpc.Listen(address)
		if err != nil {
			return err
		}
		*on.to = append(*on.to, l)
	}
	if f.socket == "" {
		return nil
	}
	l, err := listenUnix(f.socket)
	if err != nil {
		return fmt.Errorf("--grpc_socket_path: %w", err)
	}
	c.GRPC = append(c.GRPC, l)
	return nil
}
