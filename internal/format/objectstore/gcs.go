package objectstore

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// gcs makes the calls of Google Cloud Storage's JSON interface.
type gcs struct {
	calls *caller
	token *googleToken
	base  url.URL
}

func newGCS(e *environment) (*gcs, error) {
	g := &gcs{base: url.URL{Scheme: "https", Host: "storage.googleapis.com"}}
	if host := e.get("STORAGE_EMULATOR_HOST"); host != "" {
		if err := parseEmulator(host, &g.base); err != nil {
			return nil, err
		}
	}
	client, err := e.httpClient()
	if err != nil {
		return nil, err
	}
	g.token = newGoogleToken(e, client)
	g.calls = &caller{client: client, attempts: e.attempts(), backoff: e.backoff, stall: e.stall(), authorize: g.authorize, explain: explainGCS}
	return g, nil
}

// authorize implements caller.authorize. Without credentials requests are anonymous.
func (g *gcs) authorize(ctx context.Context, req *http.Request, _ []byte) error {
	// an object that is stored compressed is sent as it is stored
	req.Header.Set("Accept-Encoding", "gzip")
	token, err := g.token.get(ctx)
	if err == nil && token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	return err
}

// explainGCS returns the text of an error, which is JSON or plain.
func explainGCS(a *answer) (code, text string) {
	if a.status/100 == 2 || a.status == http.StatusPermanentRedirect {
		return "", ""
	}
	var e struct {
		Error struct {
			Message string
			Errors  []struct{ Reason string }
		}
	}
	if json.Unmarshal(a.body, &e) != nil || e.Error.Message == "" {
		return "", string(a.body[:min(len(a.body), 200)])
	}
	if len(e.Error.Errors) > 0 {
		code = e.Error.Errors[0].Reason
	}
	return code, e.Error.Message
}

// request returns a call. The parts of the path are escaped.
func (g *gcs) request(method string, n Name, prefix string, query url.Values, parts ...string) *request {
	r := &request{name: n, method: method, header: http.Header{}, url: g.base}
	path, raw := g.base.Path+prefix+"/b/"+n.Bucket+"/o", ""
	raw = path
	for _, part := range parts {
		path += "/" + part
		raw += "/" + url.PathEscape(part)
	}
	r.url.Path, r.url.RawPath, r.url.RawQuery = path, raw, query.Encode()
	return r
}

const (
	api       = "/storage/v1"
	uploadAPI = "/upload/storage/v1"
	fields    = "size,generation,updated"
)

// resource describes an object.
type resource struct {
	Name       string
	Size       string
	Generation string
	Updated    time.Time
}

func (o resource) info() Info {
	size, _ := strconv.ParseInt(o.Size, 10, 64)
	return Info{Size: size, Time: o.Updated, Tag: o.Generation}
}

// describe makes a call whose answer is a resource.
func (g *gcs) describe(ctx context.Context, r *request) (Info, error) {
	a, err := g.calls.do(ctx, r)
	if err != nil {
		return Info{}, err
	}
	var o resource
	if err := json.Unmarshal(a.body, &o); err != nil {
		return Info{}, r.error(fmt.Errorf("the answer is malformed: %w", err), 1, 0)
	}
	return o.info(), nil
}

func (g *gcs) head(ctx context.Context, n Name) (Info, error) {
	return g.describe(ctx, g.request(http.MethodGet, n, api, url.Values{"fields": {fields}}, n.Key))
}

func (g *gcs) get(ctx context.Context, n Name, tag string, offset int64, b []byte) error {
	query := url.Values{"alt": {"media"}}
	if tag != "" {
		query.Set("generation", tag)
	}
	r := g.request(http.MethodGet, n, api, query, n.Key)
	r.into, r.offset = b, offset
	_, err := g.calls.do(ctx, r)
	if tag != "" && statusOf(err) == http.StatusNotFound {
		if _, headErr := g.head(ctx, n); headErr == nil {
			// another generation exists
			return &failure{answer: answer{status: http.StatusPreconditionFailed}}
		}
	}
	return err
}

func (g *gcs) list(ctx context.Context, n Name, folders bool, from string, limit int) (page, error) {
	query := url.Values{
		"prefix": {n.Key}, "maxResults": {strconv.Itoa(limit)},
		"fields": {"nextPageToken,prefixes,items(name," + fields + ")"},
	}
	if folders {
		query.Set("delimiter", "/")
	}
	if from != "" {
		query.Set("pageToken", from)
	}
	r := g.request(http.MethodGet, Name{n.Scheme, n.Bucket, strings.TrimSuffix(n.Key, "/")}, api, query)
	a, err := g.calls.do(ctx, r)
	if err != nil {
		return page{}, err
	}
	var l struct {
		NextPageToken string
		Prefixes      []string
		Items         []resource
	}
	if err := json.Unmarshal(a.body, &l); err != nil {
		return page{}, r.error(fmt.Errorf("the list of objects is malformed: %w", err), 1, 0)
	}
	p := page{next: l.NextPageToken}
	for _, o := range l.Items {
		p.entries = append(p.entries, Entry{Name: o.Name, Info: o.info()})
	}
	for _, prefix := range l.Prefixes {
		p.entries = append(p.entries, Entry{Name: prefix, Folder: true})
	}
	return p, nil
}

func (g *gcs) put(ctx context.Context, n Name, b []byte) (Info, error) {
	r := g.request(http.MethodPost, n, uploadAPI, url.Values{"uploadType": {"media"}, "name": {n.Key}, "fields": {fields}})
	r.body = b
	r.header.Set("Content-Type", "application/octet-stream")
	return g.describe(ctx, r)
}

func (g *gcs) remove(ctx context.Context, n Name) error {
	_, err := g.calls.do(ctx, g.request(http.MethodDelete, n, api, nil, n.Key))
	return err
}

// copy copies an object. A call copies as much as it can in some seconds.
func (g *gcs) copy(ctx context.Context, from, to Name, _ int64) error {
	query := url.Values{"fields": {"done,rewriteToken"}}
	for {
		r := g.request(http.MethodPost, from, api, query, from.Key, "rewriteTo", "b", to.Bucket, "o", to.Key)
		r.slow = slowCall
		a, err := g.calls.do(ctx, r)
		if err != nil {
			return err
		}
		var answer struct {
			Done         bool
			RewriteToken string
		}
		if err := json.Unmarshal(a.body, &answer); err != nil {
			return r.error(fmt.Errorf("the answer is malformed: %w", err), 1, 0)
		}
		if answer.Done {
			return nil
		}
		query.Set("rewriteToken", answer.RewriteToken)
	}
}

// extend implements service. It stores the bytes as an object of their own, and joins it to the
// first.
func (g *gcs) extend(ctx context.Context, n Name, old Info, b []byte) (Info, error) {
	tail := n
	tail.Key += ".weft-tmp-tail"
	if _, err := g.put(ctx, tail, b); err != nil {
		return Info{}, err
	}
	query := url.Values{"fields": {fields}}
	r := g.request(http.MethodPost, n, api, query, n.Key, "compose")
	r.header.Set("Content-Type", "application/json")
	type source struct {
		Name       string `json:"name"`
		Generation string `json:"generation,omitempty"`
	}
	body := struct {
		SourceObjects []source          `json:"sourceObjects"`
		Destination   map[string]string `json:"destination"`
	}{[]source{{n.Key, old.Tag}, {tail.Key, ""}}, map[string]string{"contentType": "application/octet-stream"}}
	var err error
	if r.body, err = json.Marshal(body); err != nil {
		return Info{}, err
	}
	info, err := g.describe(ctx, r)
	if statusOf(err) == http.StatusNotFound || statusOf(err) == http.StatusPreconditionFailed {
		// an earlier attempt may have joined them, and its answer may be lost
		if now, headErr := g.head(ctx, n); headErr == nil && now.Size == old.Size+int64(len(b)) {
			info, err = now, nil
		}
	}
	if removeErr := g.remove(ctx, tail); err == nil && statusOf(removeErr) != http.StatusNotFound {
		err = removeErr
	}
	return info, err
}
