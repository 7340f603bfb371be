package objecttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// GCS starts a store with the interface of Google Cloud Storage, and sets the environment so that
// paths of the scheme "gs" lead to it. It stops with the test.
func GCS(t *testing.T) *Store {
	t.Helper()
	s := &Store{t: t, next: &gcs{objects: map[string]gcsObject{}, sessions: map[string]*gcsSession{}}}
	t.Setenv("STORAGE_EMULATOR_HOST", s.start())
	return s
}

// gcs is a store with one bucket.
type gcs struct {
	mu       sync.Mutex
	objects  map[string]gcsObject
	sessions map[string]*gcsSession
	count    int
}

type gcsObject struct {
	contents   []byte
	generation int
	updated    time.Time
}

// gcsSession is a resumable upload.
type gcsSession struct {
	name     string
	contents []byte
}

// ServeHTTP implements [http.Handler].
func (g *gcs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	upload, path := false, strings.TrimPrefix(r.URL.EscapedPath(), "/storage/v1/b/")
	if path == r.URL.EscapedPath() {
		path, upload = strings.TrimPrefix(path, "/upload/storage/v1/b/"), true
	}
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i], _ = url.PathUnescape(parts[i])
	}
	if len(parts) < 2 || parts[0] != Bucket || parts[1] != "o" {
		gcsError(w, http.StatusNotFound, "The specified bucket does not exist.")
		return
	}
	query := r.URL.Query()
	switch {
	case upload && query.Get("uploadType") == "media":
		g.answer(w, g.put(query.Get("name"), body))
	case upload && query.Get("upload_id") == "":
		g.count++
		id := strconv.Itoa(g.count)
		g.sessions[id] = &gcsSession{name: query.Get("name")}
		w.Header().Set("Location", "http://"+r.Host+r.URL.Path+"?uploadType=resumable&upload_id="+id)
	case upload:
		g.resume(w, r, query.Get("upload_id"), body)
	case len(parts) == 2:
		g.list(w, query)
	case len(parts) == 8 && parts[3] == "rewriteTo":
		o, ok := g.objects[parts[2]]
		if !ok {
			gcsError(w, http.StatusNotFound, "No such object")
			return
		}
		g.put(parts[7], o.contents)
		_ = json.NewEncoder(w).Encode(map[string]any{"done": true})
	case len(parts) == 4 && parts[3] == "compose":
		g.compose(w, parts[2], body)
	case r.Method == http.MethodGet:
		g.read(w, r, parts[2])
	default:
		if _, ok := g.objects[parts[2]]; !ok {
			gcsError(w, http.StatusNotFound, "No such object: "+parts[2])
			return
		}
		delete(g.objects, parts[2])
		w.WriteHeader(http.StatusNoContent)
	}
}

func gcsError(w http.ResponseWriter, code int, text string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": code, "message": text}})
}

func (g *gcs) put(name string, contents []byte) string {
	g.count++
	g.objects[name] = gcsObject{bytes.Clone(contents), g.count, time.Now()}
	return name
}

func (g *gcs) resource(name string) map[string]any {
	o := g.objects[name]
	return map[string]any{
		"name": name, "size": strconv.Itoa(len(o.contents)), "generation": strconv.Itoa(o.generation), "updated": o.updated.Format(time.RFC3339Nano),
	}
}

func (g *gcs) answer(w http.ResponseWriter, name string) {
	_ = json.NewEncoder(w).Encode(g.resource(name))
}

func (g *gcs) read(w http.ResponseWriter, r *http.Request, name string) {
	o, ok := g.objects[name]
	if want := r.URL.Query().Get("generation"); !ok || want != "" && want != strconv.Itoa(o.generation) {
		gcsError(w, http.StatusNotFound, "No such object: "+name)
		return
	}
	if r.URL.Query().Get("alt") != "media" {
		g.answer(w, name)
		return
	}
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(o.contents))
}

// resume takes a part of an upload. It drops the end of a part that is not the last and not a
// multiple of 256 KiB.
func (g *gcs) resume(w http.ResponseWriter, r *http.Request, id string, body []byte) {
	s := g.sessions[id]
	if s == nil {
		gcsError(w, http.StatusNotFound, "no upload")
		return
	}
	if r.Method == http.MethodDelete {
		delete(g.sessions, id)
		w.WriteHeader(499)
		return
	}
	span, total, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Content-Range"), "bytes "), "/")
	if span != "*" {
		var first, last int
		_, _ = fmt.Sscanf(span, "%d-%d", &first, &last)
		if last-first+1 != len(body) || first != len(s.contents) {
			gcsError(w, http.StatusBadRequest, fmt.Sprintf("bytes %s after %d of %d", span, len(s.contents), len(body)))
			return
		}
		if total == "*" {
			body = body[:len(body)/(256<<10)*(256<<10)]
		}
		s.contents = append(s.contents, body...)
	}
	if total == strconv.Itoa(len(s.contents)) {
		g.put(s.name, s.contents)
		g.answer(w, s.name)
		return
	}
	if len(s.contents) > 0 {
		w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", len(s.contents)-1))
	}
	w.WriteHeader(http.StatusPermanentRedirect)
}

func (g *gcs) compose(w http.ResponseWriter, name string, body []byte) {
	var request struct {
		SourceObjects []struct{ Name, Generation string }
	}
	_ = json.Unmarshal(body, &request)
	var all []byte
	for _, source := range request.SourceObjects {
		o, ok := g.objects[source.Name]
		if !ok || source.Generation != "" && source.Generation != strconv.Itoa(o.generation) {
			gcsError(w, http.StatusNotFound, "No such object: "+source.Name)
			return
		}
		all = append(all, o.contents...)
	}
	g.answer(w, g.put(name, all))
}

func (g *gcs) list(w http.ResponseWriter, query url.Values) {
	var names []string
	for name := range g.objects {
		if rest, ok := strings.CutPrefix(name, query.Get("prefix")); ok {
			if i := strings.Index(rest, "/"); i >= 0 && query.Get("delimiter") == "/" {
				name = query.Get("prefix") + rest[:i+1]
			}
			names = append(names, name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if i, found := slices.BinarySearch(names, query.Get("pageToken")); found {
		names = names[i:]
	}
	answer := map[string]any{}
	if limit, err := strconv.Atoi(query.Get("maxResults")); err == nil && len(names) > limit {
		answer["nextPageToken"] = names[limit]
		names = names[:limit]
	}
	var items []any
	var prefixes []string
	for _, name := range names {
		if _, ok := g.objects[name]; ok {
			items = append(items, g.resource(name))
		} else {
			prefixes = append(prefixes, name)
		}
	}
	answer["items"], answer["prefixes"] = items, prefixes
	_ = json.NewEncoder(w).Encode(answer)
}
