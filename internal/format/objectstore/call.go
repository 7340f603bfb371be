package objectstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/status"
)

// caller sends requests to a store, and repeats those that fail in a way that may pass.
type caller struct {
	client   *http.Client
	attempts int
	backoff  time.Duration // upper bound of the first wait; it doubles with each attempt
	// stall is the time without a byte in either direction after which an attempt fails
	stall time.Duration
	// authorize adds what proves the identity of the caller
	authorize func(ctx context.Context, req *http.Request, body []byte) error
	// explain returns the store's code and text of a failed call
	explain func(a *answer) (code, text string)
	// repair changes the next attempt after a failed call, and reports whether it has
	repair func(r *request, a *answer) bool
}

// Bounds of the waits between attempts, and of what is read of an answer.
const (
	maxBackoff  = 10 * time.Second
	maxErrorLen = 64 << 10
	maxBody     = 32 << 20
)

// request is one call of a store.
type request struct {
	name   Name
	about  Name // for errors, if it is not name
	method string
	url    url.URL
	header http.Header
	body   []byte
	// into receives the bytes of the object from offset on; nil for calls with another answer
	into   []byte
	offset int64
	// slow is the time that the store may take for the answer, if that is longer than stall
	slow time.Duration
	// accept are the status codes of success apart from those of 200 to 299
	accept []int
}

// answer is the answer to a call.
type answer struct {
	status int
	header http.Header
	body   []byte
	read   int // bytes of request.into
	// repeated reports whether an earlier attempt may have had its effect
	repeated bool
}

// failure is an answer that is not a success.
type failure struct {
	answer
	code string // of the store
	text string
}

func (f *failure) Error() string {
	text := fmt.Sprintf("%d %s", f.status, http.StatusText(f.status))
	if f.code != "" {
		text = fmt.Sprintf("%d %s", f.status, f.code)
	}
	if f.text != "" {
		text += ": " + f.text
	}
	return text
}

var errStalled = errors.New("the store neither sent nor received a byte")

// do makes a call. Errors have codes and name the object, except a *failure with the status 404,
// 412 or 416, which callers explain.
func (c *caller) do(ctx context.Context, r *request) (*answer, error) {
	var a *answer
	var err error
	repeated := false
	start := time.Now()
	for attempt := 1; ; attempt++ {
		done := 0
		if a != nil {
			done = a.read
		}
		a, err = c.attempt(ctx, r, done)
		a.repeated = repeated
		if err == nil {
			return a, nil
		}
		if ctx.Err() != nil {
			return a, status.FromContext(ctx, "using "+r.subject())
		}
		if a.read > done {
			attempt = 1 // it goes on
		}
		f, failed := errors.AsType[*failure](err)
		if failed && c.repair != nil && attempt < c.attempts && c.repair(r, a) {
			continue
		}
		if !passing(err) || attempt >= c.attempts {
			if failed && slices.Contains([]int{http.StatusNotFound, http.StatusPreconditionFailed, http.StatusRequestedRangeNotSatisfiable}, f.status) {
				f.repeated = repeated
				return a, err
			}
			return a, r.error(err, attempt, time.Since(start))
		}
		repeated = true
		if err := sleep(ctx, c.wait(attempt, a)); err != nil {
			return a, status.FromContext(ctx, "using "+r.subject())
		}
	}
}

// wait returns how long to wait after an attempt: a random part of a time that doubles, or what the
// store asks for.
func (c *caller) wait(attempt int, a *answer) time.Duration {
	bound := min(c.backoff<<min(attempt-1, 20), maxBackoff)
	d := bound/2 + rand.N(bound/2+1)
	if s, err := strconv.Atoi(a.header.Get("Retry-After")); err == nil && s > 0 {
		d = max(d, min(time.Duration(s)*time.Second, maxBackoff))
	}
	return d
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// passing reports whether another attempt may succeed.
func passing(err error) bool {
	if f, ok := errors.AsType[*failure](err); ok {
		switch f.status {
		case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
			http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return slices.Contains([]string{"RequestTimeout", "SlowDown", "InternalError", "Throttling", "RequestTimeTooSkewed"}, f.code)
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return false
	}
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return false
	}
	_, coded := errors.AsType[*status.Error](err) // such as those of credentials
	return !coded
}

// attempt makes one attempt of a call, of whose bytes done are there already. The answer is never
// nil.
func (c *caller) attempt(ctx context.Context, r *request, done int) (*answer, error) {
	a := &answer{read: done, header: http.Header{}}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := max(c.stall, r.slow)
	timer := time.AfterFunc(limit, func() { cancel(errStalled) })
	defer timer.Stop()
	progress := func() { timer.Reset(limit) }
	u := r.url
	req, err := http.NewRequestWithContext(ctx, r.method, "", nil)
	if err != nil {
		return a, err
	}
	req.URL, req.Host = &u, u.Host
	for key, values := range r.header {
		req.Header[key] = slices.Clone(values)
	}
	if r.into != nil {
		req.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", r.offset+int64(done), r.offset+int64(len(r.into))-1))
	}
	if req.ContentLength = int64(len(r.body)); len(r.body) > 0 {
		body := &requestBody{b: r.body, progress: progress}
		defer body.end()
		req.Body = io.NopCloser(body)
	}
	if err := c.authorize(ctx, req, r.body); err != nil {
		return a, err
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return a, explainStall(ctx, err, limit)
	}
	defer resp.Body.Close()
	a.status, a.header = resp.StatusCode, resp.Header
	body := &watched{resp.Body, progress}
	success := a.status/100 == 2 || slices.Contains(r.accept, a.status)
	if success && r.into != nil {
		return a, explainStall(ctx, a.fill(r, body), limit)
	}
	bound := int64(maxBody)
	if !success {
		bound = maxErrorLen
	}
	a.body, err = io.ReadAll(io.LimitReader(body, bound))
	if err != nil && success {
		return a, explainStall(ctx, err, limit)
	}
	code, text := c.explain(a)
	if success && (code == "" || a.status/100 != 2) {
		return a, nil
	}
	if success { // S3 has begun its answer before it knew the outcome
		a.status = http.StatusInternalServerError
	}
	return a, &failure{*a, code, text}
}

// fill reads the bytes of a range.
func (a *answer) fill(r *request, body io.Reader) error {
	if a.status != http.StatusPartialContent {
		// a store that ignores ranges sends the whole object
		if _, err := io.CopyN(io.Discard, body, r.offset+int64(a.read)); err != nil {
			return io.ErrUnexpectedEOF
		}
	}
	n, err := io.ReadFull(body, r.into[a.read:])
	a.read += n
	return err
}

// explainStall returns the cause of a cancelled attempt instead of its cancellation.
func explainStall(ctx context.Context, err error, limit time.Duration) error {
	if err != nil && errors.Is(context.Cause(ctx), errStalled) {
		return fmt.Errorf("%w for %v", errStalled, limit)
	}
	return err
}

// requestBody is the body of one attempt. net/http may read the body after it has returned an early
// answer. The caller reuses the bytes, so reads fail once the attempt has ended.
type requestBody struct {
	progress func()

	mu sync.Mutex
	b  []byte // guarded by mu; what is left
	// ended is whether the attempt has ended; guarded by mu
	ended bool
}

func (r *requestBody) Read(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended {
		return 0, io.ErrClosedPipe
	}
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(b, r.b)
	r.b = r.b[n:]
	r.progress()
	return n, nil
}

func (r *requestBody) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
}

// watched reports progress while it is read.
type watched struct {
	io.Reader
	progress func()
}

func (w *watched) Read(b []byte) (int, error) {
	n, err := w.Reader.Read(b)
	if n > 0 {
		w.progress()
	}
	return n, err
}

// subject returns the path that the call is about.
func (r *request) subject() string {
	if r.about.Bucket != "" {
		return r.about.String()
	}
	return r.name.String()
}

// error returns the error of a call that has failed.
func (r *request) error(err error, attempts int, took time.Duration) error {
	if _, ok := errors.AsType[*status.Error](err); ok {
		return err
	}
	after := ""
	if attempts > 1 {
		after = fmt.Sprintf(" (after %d attempts in %v)", attempts, took.Round(10*time.Millisecond))
	}
	code := status.Unavailable
	if f, ok := errors.AsType[*failure](err); ok {
		code = codeOf(f)
	}
	// the text of net/http repeats the address
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = fmt.Errorf("%s %s: %w", strings.ToUpper(u.Op), r.url.Host, u.Err)
	}
	return status.Errorf(code, "%s; %w%s", r.subject(), err, after)
}

// codeOf maps the status of HTTP to TensorFlow's code.
func codeOf(f *failure) status.Code {
	switch f.code {
	case "ExpiredToken", "InvalidAccessKeyId", "SignatureDoesNotMatch":
		return status.Unauthenticated
	}
	switch f.status {
	case http.StatusUnauthorized:
		return status.Unauthenticated
	case http.StatusForbidden:
		return status.PermissionDenied
	case http.StatusNotFound:
		return status.NotFound
	case http.StatusConflict:
		return status.Aborted
	case http.StatusPreconditionFailed:
		return status.FailedPrecondition
	case http.StatusRequestedRangeNotSatisfiable:
		return status.OutOfRange
	case http.StatusTooManyRequests:
		return status.ResourceExhausted
	case http.StatusNotImplemented:
		return status.Unimplemented
	}
	if f.status/100 == 4 {
		return status.InvalidArgument
	}
	return status.Unavailable
}

// statusOf returns the HTTP status of a failed call, or 0.
func statusOf(err error) int {
	if f, ok := errors.AsType[*failure](err); ok {
		return f.status
	}
	return 0
}
