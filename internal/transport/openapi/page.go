package openapi

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
	"net/http"
	"strconv"
	"strings"
)

// swagger is Swagger UI 5.35.0, compressed, with a page that shows the description "openapi.json"
// in the same folder. It needs no other host.
//
//go:embed swagger/index.html swagger/init.js swagger/*.gz swagger/LICENSE swagger/NOTICE swagger/*.txt
var swagger embed.FS

// policy is the Content-Security-Policy of the page. Swagger UI writes styles into elements, and
// its icons are images in the style sheet.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; frame-ancestors 'none'"

// ServePage answers a request for a file of the page, "" for the page itself. It reports whether
// there is such a file.
func ServePage(w http.ResponseWriter, r *http.Request, file string) bool {
	kind := ""
	switch {
	case file == "":
		file, kind = "index.html", "text/html; charset=utf-8"
	case strings.HasSuffix(file, ".js"):
		kind = "text/javascript; charset=utf-8"
	case strings.HasSuffix(file, ".css"):
		kind = "text/css; charset=utf-8"
	case file == "LICENSE", file == "NOTICE", strings.HasSuffix(file, ".txt"):
		kind = "text/plain; charset=utf-8"
	}
	if kind == "" || strings.Contains(file, "/") {
		return false
	}
	header := w.Header()
	b, err := swagger.ReadFile("swagger/" + file)
	if err != nil {
		if b, err = swagger.ReadFile("swagger/" + file + ".gz"); err != nil {
			return false
		}
		if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
			header.Set("Content-Encoding", "gzip")
		} else if b, err = inflate(b); err != nil {
			return false
		}
	}
	header.Set("Content-Type", kind)
	header.Set("Content-Security-Policy", policy)
	header.Set("Content-Length", strconv.Itoa(len(b)))
	_, _ = w.Write(b) // the client may have gone
	return true
}

func inflate(b []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}
