package serving_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/pem"
	"fmt"
	"io"
	"math"
	"math/big"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	grpcstatus "google.golang.org/grpc/status"

	"github.com/weft-ml/weft/internal/proto/servingpb"
	"github.com/weft-ml/weft/internal/serving"
	"github.com/weft-ml/weft/op"
	"github.com/weft-ml/weft/savedmodel"
	"github.com/weft-ml/weft/tensor"
)

// selfSigned returns a certificate for 127.0.0.1 that signs itself, and its key.
func selfSigned(t *testing.T) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})
}

// predictOver makes a call over a connection of its own.
func predictOver(t *testing.T, target string, creds credentials.TransportCredentials) error {
	t.Helper()
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	out := &servingpb.PredictResponse{}
	err = conn.Invoke(context.Background(), "/tensorflow.serving.PredictionService/Predict", predictRequest(0), out)
	if err == nil && out.GetOutputs()["y"].GetFloatVal()[0] != 3.5 {
		t.Errorf("got %v", out)
	}
	return err
}

func TestTLS(t *testing.T) {
	cert, key := selfSigned(t)
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(cert)
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	bare := credentials.NewTLS(&tls.Config{RootCAs: pool})
	known := credentials.NewTLS(&tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}})
	for _, tt := range []struct {
		name, more  string
		bareRefused bool
	}{
		{"server", "", false},
		{"mutual", fmt.Sprintf("client_verify: true custom_ca: %q", cert), true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config, err := serving.ParseTLS(fmt.Appendf(nil, "server_cert: %q server_key: %q %s", cert, key, tt.more))
			if err != nil {
				t.Fatal(err)
			}
			r := start(t, func(c *serving.Config) { c.TLS = config }, 1)
			if err := predictOver(t, r.conn.Target(), known); err != nil {
				t.Error(err)
			}
			if err := predictOver(t, r.conn.Target(), bare); (err != nil) != tt.bareRefused {
				t.Errorf("without a certificate: %v", err)
			}
			if err := predictOver(t, r.conn.Target(), insecure.NewCredentials()); grpcstatus.Code(err) != codes.Unavailable {
				t.Errorf("without TLS: %v", err)
			}
		})
	}
	for text, want := range map[string]string{
		"server_cert: 1": "Failed to parse SSLConfig",
		"":               "server_cert and server_key: tls: failed to find any PEM data in certificate input",
		fmt.Sprintf("server_cert: %q server_key: %q client_verify: true custom_ca: 'x'", cert, key): "custom_ca has no certificate in PEM",
	} {
		if _, err := serving.ParseTLS([]byte(text)); err == nil || !contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

func TestUnixSocket(t *testing.T) {
	path := filepath.Join(t.TempDir(), "grpc.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	cert, key := selfSigned(t)
	config, err := serving.ParseTLS(fmt.Appendf(nil, "server_cert: %q server_key: %q", cert, key))
	if err != nil {
		t.Fatal(err)
	}
	start(t, func(c *serving.Config) { c.GRPC, c.TLS = append(c.GRPC, l), config }, 1)
	if err := predictOver(t, "unix:"+path, insecure.NewCredentials()); err != nil {
		t.Error(err)
	}
}

// A request ends at its deadline, and so does its step.
func TestDeadlines(t *testing.T) {
	base := t.TempDir()
	s := op.NewScope()
	x := op.Placeholder(s.Named("x"), tensor.Float32)
	queue := op.FIFOQueueV2(s.Named("queue"), []tensor.DType{tensor.Float32})
	y := op.AddV2(s.Named("y"), x, op.QueueDequeueV2(s.Named("never"), queue, []tensor.DType{tensor.Float32})[0])
	write(t, filepath.Join(base, "1"), s, savedmodel.Signature{
		Inputs: infos(map[string]op.Output{"x": x}, -1), Outputs: infos(map[string]op.Output{"y": y}, -1),
	})
	r := start(t, func(c *serving.Config) { c.Models, c.RESTTimeout = configOf(base, ""), 20*time.Millisecond })
	for path, body := range map[string]string{
		"/v1/models/m:predict": `{"instances": [1]}`,
		"/v2/models/m/infer":   `{"inputs": [{"name": "x", "shape": [1], "datatype": "FP32", "data": [2]}]}`,
	} {
		if code, body := r.post(path, body); code != http.StatusGatewayTimeout {
			t.Errorf("%s: got %d %s", path, code, body)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	err := r.conn.Invoke(ctx, "/tensorflow.serving.PredictionService/Predict", vectorRequest(), &servingpb.PredictResponse{})
	if grpcstatus.Code(err) != codes.DeadlineExceeded {
		t.Errorf("got %v", err)
	}
	if err := r.stop(); err != nil { // would wait for a step that runs
		t.Error(err)
	}
}

// One request of the Open Inference Protocol may have inputs as JSON and as bytes, and so may its
// answer.
func TestMixedInputs(t *testing.T) {
	base := t.TempDir()
	writeSum(t, filepath.Join(base, "1"), 10)
	r := start(t, func(c *serving.Config) { c.Models = configOf(base, "") })
	head := `{"inputs": [{"name": "x", "shape": [2], "datatype": "FP32", "parameters": {"binary_data_size": 8}},
		{"name": "a", "shape": [2], "datatype": "FP32", "data": [2, 3]},
		{"name": "b", "shape": [1], "datatype": "FP32", "parameters": {"binary_data_size": 4}}],
		"outputs": [{"name": "y", "parameters": {"binary_data": %v}}]}`
	var tail []byte
	for _, v := range []float32{5, 7, 0.5} {
		tail = binary.LittleEndian.AppendUint32(tail, math.Float32bits(v))
	}
	for _, asBytes := range []bool{false, true} {
		text := fmt.Sprintf(head, asBytes)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/v2/models/m/infer", bytes.NewReader(append([]byte(text), tail...)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Inference-Header-Content-Length", strconv.Itoa(len(text)))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("got %d %s, %v", resp.StatusCode, body, err)
		}
		want := `{"model_name":"m","model_version":"1","outputs":[{"name":"y","datatype":"FP32","shape":[2],"data":[10.5,21.5]}]}`
		if asBytes {
			want = `{"model_name":"m","model_version":"1","outputs":[{"name":"y","datatype":"FP32","shape":[2],"parameters":{"binary_data_size":8}}]}`
			n, err := strconv.Atoi(resp.Header.Get("Inference-Header-Content-Length"))
			if err != nil || n > len(body) {
				t.Fatalf("got a header of %d bytes, %v", n, err)
			}
			var values [2]float32
			if err := binary.Read(bytes.NewReader(body[n:]), binary.LittleEndian, &values); err != nil || values != [2]float32{10.5, 21.5} {
				t.Errorf("got %v, %v", values, err)
			}
			body = body[:n]
		}
		if got := compact(t, string(body)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestConnections opens more connections over HTTP and gRPC than a client may have.
func TestConnections(t *testing.T) {
	r := start(t, func(c *serving.Config) { c.Limits.AddressConnections = 4 }, 1)
	for _, address := range []string{strings.TrimPrefix(r.url, "http://"), r.conn.Target()} {
		var last net.Conn
		for range 5 {
			c, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			last = c
		}
		if _, err := last.Write([]byte("GET / HTTP/1.1\r\n\r\n")); err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(last); !strings.Contains(string(got), "too many connections from this address (4, set by --max-connections-per-address)") {
			t.Errorf("%s: got %q", address, got)
		}
	}
	_, text := r.get("/metrics") // over a connection that the client has kept
	if !strings.Contains(text, `weft_limited_total{limit="address_connections"} `) || strings.Contains(text, `{limit="address_connections"} 0`) {
		t.Errorf("got %s", text)
	}
}
