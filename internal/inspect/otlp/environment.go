package otlp

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"
)

// Names of variables of the environment.
const (
	envDisabled = "OTEL_SDK_DISABLED"
	envExporter = "OTEL_TRACES_EXPORTER"
	envPrefix   = "OTEL_EXPORTER_OTLP_"
	envTraces   = envPrefix + "TRACES_"
)

// Defaults of OpenTelemetry.
const (
	defaultEndpoint = "http://localhost:4318"
	defaultTimeout  = 10 * time.Second
	tracesPath      = "/v1/traces"
)

// FromEnvironment returns the configuration that OpenTelemetry's variables describe, nil if they
// ask for no traces: without an endpoint and an exporter, nothing is sent. get is os.Getenv.
func FromEnvironment(get func(string) string, log *slog.Logger) (*Config, error) {
	v := variables{get}
	if strings.EqualFold(get(envDisabled), "true") {
		return nil, nil //nolint:nilnil // see above
	}
	own, shared := get(envTraces+"ENDPOINT"), get(envPrefix+"ENDPOINT")
	switch exporter := get(envExporter); {
	case exporter == "none", exporter == "" && own == "" && shared == "":
		return nil, nil //nolint:nilnil // see above
	case exporter != "" && exporter != "otlp":
		return nil, fmt.Errorf("%s=%s: Weft has the exporters otlp and none", envExporter, exporter)
	}
	if protocol, name := v.of("PROTOCOL"); protocol != "" && protocol != "http/protobuf" {
		return nil, fmt.Errorf("%s=%s: Weft sends traces with the protocol http/protobuf, to port 4318 of most collectors", name, protocol)
	}
	c := &Config{Timeout: defaultTimeout, Log: log}
	var err error
	if c.URL, err = tracesURL(own, shared); err != nil {
		return nil, err
	}
	headers, name := v.of("HEADERS")
	if c.Headers, err = parseHeaders(headers); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	switch compression, name := v.of("COMPRESSION"); compression {
	case "gzip":
		c.Gzip = true
	case "", "none":
	default:
		return nil, fmt.Errorf("%s=%s: it is gzip or none", name, compression)
	}
	if timeout, name := v.of("TIMEOUT"); timeout != "" {
		ms, err := strconv.Atoi(timeout)
		if err != nil || ms <= 0 {
			return nil, fmt.Errorf("%s=%s: it is a positive number of milliseconds", name, timeout)
		}
		c.Timeout = time.Duration(ms) * time.Millisecond
	}
	if strings.HasPrefix(c.URL, "https:") {
		c.TLS, err = v.tls()
	}
	return c, err
}

// variables are those whose names begin with OTEL_EXPORTER_OTLP_.
type variables struct{ get func(string) string }

// of returns the value of a variable, and its whole name. One for traces goes before one for all
// signals.
func (v variables) of(name string) (value, whole string) {
	whole = envTraces + name
	if value = v.get(whole); value == "" {
		whole = envPrefix + name
		value = v.get(whole)
	}
	return value, whole
}

// tracesURL returns the URL for traces. That for all signals is the URL of a folder.
func tracesURL(own, shared string) (string, error) {
	name, text := envTraces+"ENDPOINT", own
	if own == "" {
		name, text = envPrefix+"ENDPOINT", cmp.Or(shared, defaultEndpoint)
	}
	u, err := url.Parse(text)
	if err != nil {
		return "", fmt.Errorf("%s: %w", name, err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", fmt.Errorf("%s=%s: it is a URL, such as %s", name, text, defaultEndpoint)
	}
	switch {
	case own == "":
		u.Path = strings.TrimSuffix(u.Path, "/") + tracesPath
	case u.Path == "":
		u.Path = "/"
	}
	return u.String(), nil
}

// parseHeaders parses "name=value,name=value". Values are percent-encoded. Errors name no values,
// which may be secret.
func parseHeaders(list string) (map[string]string, error) {
	out := map[string]string{}
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		if name = strings.TrimSpace(name); !ok || name == "" {
			return nil, fmt.Errorf("a header has no name or no value: the form is name=value,name=value")
		}
		decoded, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil {
			return nil, fmt.Errorf("the value of header %s is not percent-encoded", name)
		}
		out[name] = decoded
	}
	return out, nil
}

// tls returns the configuration of TLS. It has the certificates that the system trusts, read before
// the process restricts what it may read.
func (v variables) tls() (*tls.Config, error) {
	ca, caName := v.of("CERTIFICATE")
	cert, certName := v.of("CLIENT_CERTIFICATE")
	key, _ := v.of("CLIENT_KEY")
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	var err error
	if ca == "" {
		if c.RootCAs, err = x509.SystemCertPool(); err != nil {
			return nil, err
		}
	} else {
		text, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", caName, err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s: %s has no certificate", caName, ca)
		}
	}
	if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", certName, err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}

// Port returns the TCP port to which an exporter connects: that of the collector, or of the proxy
// that the environment names.
func (c *Config) Port() uint16 {
	u, err := url.Parse(c.URL)
	if err != nil {
		return 0
	}
	if proxy, err := http.ProxyFromEnvironment(&http.Request{URL: u}); err == nil && proxy != nil {
		u = proxy
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		return uint16(n)
	}
	if u.Scheme == "https" {
		return 443
	}
	return 80
}
