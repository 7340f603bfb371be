package objectstore

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weft-ml/weft/status"
)

// gcsUpload is a resumable upload: the parts follow one another, and the last one completes it.
type gcsUpload struct {
	g       *gcs
	name    Name
	session url.URL
	sent    int64
}

func (g *gcs) start(ctx context.Context, n Name) (upload, error) {
	r := g.request(http.MethodPost, n, uploadAPI, url.Values{"uploadType": {"resumable"}, "name": {n.Key}})
	r.header.Set("X-Upload-Content-Type", "application/octet-stream")
	a, err := g.calls.do(ctx, r)
	if err != nil {
		return nil, err
	}
	u := &gcsUpload{g: g, name: n}
	session, err := url.Parse(a.header.Get("Location"))
	if err != nil || session.Host == "" {
		return nil, r.error(fmt.Errorf("the answer names no session for the upload"), 1, 0)
	}
	u.session = *session
	// the session is used where the call was answered, also behind a proxy of an emulator
	u.session.Scheme, u.session.Host = g.base.Scheme, g.base.Host
	return u, nil
}

var errNoBytes = errors.New("the store has taken none of the bytes")

// send sends bytes. After an attempt that failed it asks the store how many of them it has.
func (u *gcsUpload) send(ctx context.Context, b []byte, last bool) error {
	total, start := "*", time.Now()
	if last {
		total = strconv.FormatInt(u.sent+int64(len(b)), 10)
	}
	for attempt := 1; ; attempt++ {
		done, n, err := u.try(ctx, b, len(b), total)
		if b = b[n:]; done || err == nil && len(b) == 0 && !last {
			return nil
		}
		if n > 0 {
			attempt = 1 // it goes on
			continue
		}
		if err == nil {
			err = errNoBytes
		}
		if ctx.Err() != nil {
			return status.FromContext(ctx, "writing "+u.name.String())
		}
		if !passing(err) || attempt >= u.g.calls.attempts {
			return (&request{name: u.name, url: u.session}).error(err, attempt, time.Since(start))
		}
		if sleep(ctx, u.g.calls.wait(attempt, &answer{header: http.Header{}})) != nil {
			continue // the next attempt reports the end of the context
		}
		done, n, err = u.try(ctx, nil, len(b), total)
		if b = b[n:]; done || err == nil && len(b) == 0 && !last {
			return nil
		}
	}
}

// try sends bytes once, or asks for the state of the upload if there are none. It returns whether
// the object is complete, and how many of the waiting bytes the store has taken.
func (u *gcsUpload) try(ctx context.Context, b []byte, waiting int, total string) (done bool, n int, err error) {
	r := &request{
		name: u.name, method: http.MethodPut, header: http.Header{}, url: u.session, body: b, slow: slowCall,
		accept: []int{http.StatusPermanentRedirect}, // it wants more
	}
	if len(b) == 0 {
		r.header.Set("Content-Range", "bytes */"+total)
	} else {
		r.header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%s", u.sent, u.sent+int64(len(b))-1, total))
	}
	a, err := u.g.calls.attempt(ctx, r, 0)
	if err != nil {
		return false, 0, err
	}
	if a.status != http.StatusPermanentRedirect {
		return true, waiting, nil
	}
	_, end, found := strings.Cut(a.header.Get("Range"), "-")
	if at, err := strconv.ParseInt(end, 10, 64); found && err == nil {
		n = int(min(max(at+1-u.sent, 0), int64(waiting)))
	}
	u.sent += int64(n)
	return false, n, nil
}

func (u *gcsUpload) part(ctx context.Context, b []byte) error   { return u.send(ctx, b, false) }
func (u *gcsUpload) finish(ctx context.Context, b []byte) error { return u.send(ctx, b, true) }

func (u *gcsUpload) abort(ctx context.Context) error {
	r := &request{name: u.name, method: http.MethodDelete, header: http.Header{}, url: u.session, accept: []int{499}}
	_, err := u.g.calls.do(ctx, r)
	return err
}
