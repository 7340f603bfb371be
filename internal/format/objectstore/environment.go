package objectstore

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/status"
)

// variables are the environment variables that configure the clients.
var variables = []string{
	"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE",
	"AWS_REGION", "AWS_DEFAULT_REGION", "S3_REGION", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "S3_ENDPOINT", "S3_USE_HTTPS", "S3_VERIFY_SSL",
	"AWS_CA_BUNDLE", "S3_CA_FILE", "AWS_MAX_ATTEMPTS", "S3_REQUEST_TIMEOUT_MSEC", "S3_CONNECT_TIMEOUT_MSEC",
	"AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_ROLE_ARN", "AWS_ROLE_SESSION_NAME", "AWS_ENDPOINT_URL_STS", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
	"AWS_CONTAINER_CREDENTIALS_FULL_URI", "AWS_CONTAINER_AUTHORIZATION_TOKEN", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
	"AWS_EC2_METADATA_DISABLED", "AWS_EC2_METADATA_SERVICE_ENDPOINT",
	"STORAGE_EMULATOR_HOST", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_AUTH_TOKEN_FOR_TESTING", "GCE_METADATA_HOST", "NO_GCE_CHECK", "CLOUDSDK_CONFIG", "HOME",
}

// environment is the configuration of the clients.
type environment struct {
	values  map[string]string
	backoff time.Duration // see caller
	// profile are the settings of the profile in the shared files of S3
	profile map[string]string
}

// services holds a client of each kind of store for the environment in which it was made, since
// programs may change their environment.
var services struct {
	sync.Mutex
	known map[string]known // by scheme; guarded by the mutex
}

type known struct {
	environment string
	service     service
	client      *http.Client
}

// defaultBackoff is the longest first wait between two attempts, that of TensorFlow.
const defaultBackoff = 100 * time.Millisecond

// firstBackoff is defaultBackoff. Tests make it shorter.
var firstBackoff = defaultBackoff

// newEnvironment returns the environment of the process, and a text that differs from that of
// another environment.
func newEnvironment() (*environment, string) {
	e := &environment{values: map[string]string{}, backoff: firstBackoff}
	var id strings.Builder
	for _, name := range variables {
		if value, ok := os.LookupEnv(name); ok {
			e.values[name] = value
			id.WriteString(name + "=" + value + "\x00")
		}
	}
	return e, id.String()
}

// serviceOf returns the client for a scheme.
func serviceOf(scheme string) (service, error) {
	e, id := newEnvironment()
	services.Lock()
	defer services.Unlock()
	if k, ok := services.known[scheme]; ok && k.environment == id {
		return k.service, nil
	}
	var s service
	var client *http.Client
	switch scheme {
	case S3:
		e.readProfile()
		c, err := newS3(e)
		if err != nil {
			return nil, err
		}
		s, client = c, c.calls.client
	case GCS:
		c, err := newGCS(e)
		if err != nil {
			return nil, err
		}
		s, client = c, c.calls.client
	default:
		return nil, status.Errorf(status.Unimplemented, "File system scheme '%s' not implemented", scheme)
	}
	if old, ok := services.known[scheme]; ok {
		old.client.CloseIdleConnections()
	}
	if services.known == nil {
		services.known = map[string]known{}
	}
	services.known[scheme] = known{id, s, client}
	return s, nil
}

// CloseIdleConnections closes the connections to stores that no call uses.
func CloseIdleConnections() {
	services.Lock()
	defer services.Unlock()
	for _, k := range services.known {
		k.client.CloseIdleConnections()
	}
}

func (e *environment) get(names ...string) string {
	for _, name := range names {
		if v := e.values[name]; v != "" {
			return v
		}
	}
	return ""
}

// readProfile reads the settings of the profile from the files that S3's programs share. In the
// configuration other sections than the default begin with "profile".
func (e *environment) readProfile() {
	name := cmp.Or(e.get("AWS_PROFILE"), "default")
	dir := filepath.Join(e.get("HOME"), ".aws")
	config := name
	if name != "default" {
		config = "profile " + name
	}
	e.profile = map[string]string{}
	for file, section := range map[string]string{
		cmp.Or(e.get("AWS_CONFIG_FILE"), filepath.Join(dir, "config")):                  config,
		cmp.Or(e.get("AWS_SHARED_CREDENTIALS_FILE"), filepath.Join(dir, "credentials")): name,
	} {
		if text, err := os.ReadFile(file); err == nil {
			readSection(text, section, e.profile)
		}
	}
}

// readSection adds the settings of a section to m. Nested settings are left out.
func readSection(text []byte, section string, m map[string]string) {
	in := false
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
		case trimmed[0] == '[':
			name, _, _ := strings.Cut(trimmed[1:], "]")
			in = strings.Join(strings.Fields(name), " ") == section
		case in && line[0] != ' ' && line[0] != '\t':
			if key, value, ok := strings.Cut(trimmed, "="); ok {
				m[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(value)
			}
		}
	}
}

func (e *environment) region() string {
	return cmp.Or(e.get("AWS_REGION", "AWS_DEFAULT_REGION", "S3_REGION"), e.profile["region"], "us-east-1")
}

// endpoint sets the address of a store that is not Amazon's. S3_ENDPOINT has no scheme in
// TensorFlow.
func (e *environment) endpoint(u *url.URL) error {
	u.Scheme = "https"
	if strings.HasPrefix(e.get("S3_USE_HTTPS"), "0") {
		u.Scheme = "http"
	}
	text := cmp.Or(e.get("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"), e.profile["endpoint_url"], e.get("S3_ENDPOINT"))
	if text == "" {
		return nil
	}
	if !strings.Contains(text, "://") {
		text = u.Scheme + "://" + text
	}
	parsed, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return status.InvalidArgumentf("%q is not the address of a store (AWS_ENDPOINT_URL or S3_ENDPOINT)", text)
	}
	*u = *parsed
	return nil
}

// attempts returns how often a call is made: 10 times, as in TensorFlow.
func (e *environment) attempts() int {
	if n, err := strconv.Atoi(e.get("AWS_MAX_ATTEMPTS")); err == nil && n > 0 {
		return n
	}
	return 10
}

// Limits of time.
const (
	defaultStall   = 30 * time.Second
	defaultConnect = 10 * time.Second
	idleConnection = 30 * time.Second
)

func (e *environment) milliseconds(name string, otherwise time.Duration) time.Duration {
	if n, err := strconv.Atoi(e.get(name)); err == nil && n > 0 {
		return time.Duration(n) * time.Millisecond
	}
	return otherwise
}

func (e *environment) stall() time.Duration {
	return e.milliseconds("S3_REQUEST_TIMEOUT_MSEC", defaultStall)
}

// httpClient returns a client that follows no redirection, since signatures are for one host.
func (e *environment) httpClient() (*http.Client, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if file := e.get("AWS_CA_BUNDLE", "S3_CA_FILE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, status.Errorf(status.FailedPrecondition, "the certificates of the store (AWS_CA_BUNDLE or S3_CA_FILE): %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(text) {
			return nil, status.Errorf(status.FailedPrecondition, "%s (AWS_CA_BUNDLE or S3_CA_FILE) contains no certificate", file)
		}
	}
	config.InsecureSkipVerify = strings.HasPrefix(e.get("S3_VERIFY_SSL"), "0") //nolint:gosec // asked for
	transport := &http.Transport{
		Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, DisableCompression: true, ForceAttemptHTTP2: true,
		DialContext:         (&net.Dialer{Timeout: e.milliseconds("S3_CONNECT_TIMEOUT_MSEC", defaultConnect)}).DialContext,
		TLSHandshakeTimeout: defaultConnect, MaxIdleConnsPerHost: 64, IdleConnTimeout: idleConnection,
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}, nil
}
