// Package objecttest has object stores for tests: a server with the interface of S3 from another
// project, and one with that of Google Cloud Storage. Both run in the test's process, and can fail.
// The first also checks the signatures of requests.
package objecttest

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/weft-ml/weft/internal/format/objectstore"
)

// Bucket is the name of the bucket in every store.
const Bucket = "bucket"

// The credentials that a store of S3 accepts.
const (
	keyID  = "weft-test"
	secret = "weft/test+secret"
	region = "eu-north-1"
)

// Fault is what happens to a request.
type Fault int

// The faults.
const (
	None      Fault = iota
	Internal        // the status 500
	SlowDown        // the status 503 with S3's code
	Cut             // the connection is closed before the request is read
	CutAnswer       // the request is served, and the connection closed in the middle of the answer
	Lost            // the request is served, and the connection closed before the answer
	Hang            // there is no answer until the client gives up
)

// Store is a store for a test.
type Store struct {
	t    *testing.T
	next http.Handler
	sign bool // requests must have signatures

	mu       sync.Mutex
	fault    func(*http.Request) Fault // guarded by mu
	requests []string                  // "METHOD path?query"; guarded by mu
}

// S3 starts a store with the interface of S3, and sets the environment so that paths of the scheme
// "s3" lead to it. It stops with the test.
func S3(t *testing.T) *Store {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(Bucket); err != nil {
		t.Fatal(err)
	}
	s := &Store{t: t, next: copyParts(gofakes3.New(backend).Server()), sign: true}
	t.Setenv("AWS_ENDPOINT_URL", s.start())
	t.Setenv("AWS_ACCESS_KEY_ID", keyID)
	t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
	t.Setenv("AWS_REGION", region)
	return s
}

func (s *Store) start() string {
	server := httptest.NewServer(s)
	s.t.Setenv("HOME", s.t.TempDir()) // no credentials of the user
	s.t.Cleanup(func() {
		objectstore.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	return server.URL
}

// Fail sets the function that chooses what happens to each request.
func (s *Store) Fail(f func(*http.Request) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
}

// FailEvery makes every nth request fail, with the faults in turn.
func (s *Store) FailEvery(n int, faults ...Fault) {
	count := 0 // guarded by s.mu
	s.Fail(func(*http.Request) Fault {
		if count++; count%n != 0 {
			return None
		}
		return faults[count/n%len(faults)]
	})
}

// Requests returns the requests since the last call.
func (s *Store) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.requests
	s.requests = nil
	return out
}

// ServeHTTP implements [http.Handler].
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, r.Method+" "+r.URL.RequestURI())
	fault := None
	if s.fault != nil {
		fault = s.fault(r)
	}
	s.mu.Unlock()
	switch fault {
	case Internal:
		w.WriteHeader(http.StatusInternalServerError)
		return
	case SlowDown:
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>")
		return
	case Cut:
		panic(http.ErrAbortHandler)
	case Hang:
		_, _ = io.Copy(io.Discard, r.Body) // only then it sees the end of the client
		<-r.Context().Done()
		return
	case None, CutAnswer, Lost: // the request is served
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if err := s.verify(r, body); err != nil {
		s.t.Errorf("%s %s: %v", r.Method, r.URL, err)
		w.WriteHeader(http.StatusForbidden)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if fault == None {
		s.next.ServeHTTP(w, r)
		return
	}
	answer := httptest.NewRecorder()
	s.next.ServeHTTP(answer, r)
	if fault == CutAnswer && answer.Body.Len() > 1 {
		maps.Copy(w.Header(), answer.Header())
		w.Header().Set("Content-Length", fmt.Sprint(answer.Body.Len()))
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
	}
	panic(http.ErrAbortHandler)
}

// verify checks the signature of a request by the rules of its version 4.
func (s *Store) verify(r *http.Request, body []byte) error {
	if !s.sign {
		return nil
	}
	fields := map[string]string{}
	header := r.Header.Get("Authorization")
	text, ok := strings.CutPrefix(header, "AWS4-HMAC-SHA256 ")
	for field := range strings.SplitSeq(text, ", ") {
		name, value, _ := strings.Cut(field, "=")
		fields[name] = value
	}
	scope := strings.Split(fields["Credential"], "/")
	if !ok || len(scope) != 5 || scope[0] != keyID || scope[2] != region || scope[3] != "s3" {
		return fmt.Errorf("the header Authorization is %q", header)
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	if got := r.Header.Get("X-Amz-Content-Sha256"); got != hash {
		return fmt.Errorf("X-Amz-Content-Sha256 is %q, want %q", got, hash)
	}
	query := strings.Split(r.URL.RawQuery, "&")
	slices.Sort(query)
	var canonical strings.Builder
	canonical.WriteString(r.Method + "\n" + r.URL.EscapedPath() + "\n" + strings.Join(query, "&") + "\n")
	for name := range strings.SplitSeq(fields["SignedHeaders"], ";") {
		value := r.Header.Get(name)
		switch name {
		case "host":
			value = r.Host
		case "content-length":
			value = fmt.Sprint(r.ContentLength)
		}
		canonical.WriteString(name + ":" + strings.TrimSpace(value) + "\n")
	}
	canonical.WriteString("\n" + fields["SignedHeaders"] + "\n" + hash)
	sum = sha256.Sum256([]byte(canonical.String()))
	toSign := "AWS4-HMAC-SHA256\n" + r.Header.Get("X-Amz-Date") + "\n" + strings.Join(scope[1:], "/") + "\n" + hex.EncodeToString(sum[:])
	key := []byte("AWS4" + secret)
	for _, part := range append(scope[1:], toSign) {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	if hex.EncodeToString(key) != fields["Signature"] {
		return fmt.Errorf("the signature is wrong")
	}
	return nil
}

// copyParts adds UploadPartCopy and the condition If-Match to a store that has neither.
func copyParts(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		source := r.Header.Get("X-Amz-Copy-Source")
		if r.Method == http.MethodPut && source != "" && r.URL.Query().Has("partNumber") {
			from := httptest.NewRequest(http.MethodGet, source, nil)
			from.Header.Set("Range", r.Header.Get("X-Amz-Copy-Source-Range"))
			got := httptest.NewRecorder()
			next.ServeHTTP(got, from)
			if got.Code/100 != 2 {
				w.WriteHeader(got.Code)
				return
			}
			part := httptest.NewRequest(http.MethodPut, r.URL.RequestURI(), bytes.NewReader(got.Body.Bytes()))
			part.Header.Set("Content-Length", fmt.Sprint(got.Body.Len()))
			put := httptest.NewRecorder()
			next.ServeHTTP(put, part)
			if put.Code/100 != 2 {
				w.WriteHeader(put.Code)
				_, _ = w.Write(put.Body.Bytes())
				return
			}
			_ = xml.NewEncoder(w).Encode(struct {
				XMLName xml.Name `xml:"CopyPartResult"`
				ETag    string
			}{ETag: put.Header().Get("Etag")})
			return
		}
		if want := r.Header.Get("If-Match"); r.Method == http.MethodGet && want != "" {
			head := httptest.NewRecorder()
			next.ServeHTTP(head, httptest.NewRequest(http.MethodHead, r.URL.RequestURI(), nil))
			if head.Code == http.StatusOK && head.Header().Get("Etag") != want {
				w.WriteHeader(http.StatusPreconditionFailed)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
