package objectstore

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/weft-ml/weft/status"
)

// Sizes of copies: S3 copies objects of up to 5 GiB by one call, and larger ones in parts of up to
// 5 GiB.
const (
	maxCopy  = 5 << 30
	copyPart = 1 << 30
)

// slowCall is the time that S3 may take to complete an upload or to copy.
const slowCall = 5 * time.Minute

// s3Upload is a multipart upload.
type s3Upload struct {
	s     *s3
	name  Name
	id    string
	parts []s3Part
	bytes int64
}

type s3Part struct {
	PartNumber int
	ETag       string
}

func (s *s3) start(ctx context.Context, n Name) (upload, error) { return s.startUpload(ctx, n) }

func (s *s3) startUpload(ctx context.Context, n Name) (*s3Upload, error) {
	r := s.request(http.MethodPost, n, url.Values{"uploads": {""}})
	r.header.Set("Content-Type", "application/octet-stream")
	a, err := s.do(ctx, r)
	if err != nil {
		return nil, err
	}
	var started struct{ UploadId string } //nolint:staticcheck // S3's name
	if err := xml.Unmarshal(a.body, &started); err != nil || started.UploadId == "" {
		return nil, r.error(fmt.Errorf("the answer to CreateMultipartUpload names no upload"), 1, 0)
	}
	return &s3Upload{s: s, name: n, id: started.UploadId}, nil
}

// next returns the call for the next part.
func (u *s3Upload) next() *request {
	return u.s.request(http.MethodPut, u.name, url.Values{"uploadId": {u.id}, "partNumber": {strconv.Itoa(len(u.parts) + 1)}})
}

func (u *s3Upload) part(ctx context.Context, b []byte) error {
	r := u.next()
	r.body = b
	a, err := u.s.do(ctx, r)
	if err != nil {
		return err
	}
	u.parts = append(u.parts, s3Part{len(u.parts) + 1, a.header.Get("Etag")})
	u.bytes += int64(len(b))
	return nil
}

var errNoPartCopy = errors.New("the store does not copy parts")

// copyRange adds bytes of an object as a part. Some stores cannot (errNoPartCopy).
func (u *s3Upload) copyRange(ctx context.Context, from Name, tag string, offset, size int64) error {
	r := u.next()
	r.slow = slowCall
	r.header.Set("X-Amz-Copy-Source", escape("/"+from.Bucket+"/"+from.Key))
	r.header.Set("X-Amz-Copy-Source-Range", fmt.Sprintf("bytes=%d-%d", offset, offset+size-1))
	if tag != "" {
		r.header.Set("X-Amz-Copy-Source-If-Match", tag)
	}
	a, err := u.s.do(ctx, r)
	if statusOf(err) == http.StatusNotImplemented || status.CodeOf(err) == status.Unimplemented {
		return errNoPartCopy
	}
	if err != nil {
		return err
	}
	var copied struct {
		XMLName xml.Name `xml:"CopyPartResult"`
		ETag    string
	}
	if xml.Unmarshal(a.body, &copied) != nil {
		return errNoPartCopy // the store has not seen that the part is a copy
	}
	u.parts = append(u.parts, s3Part{len(u.parts) + 1, copied.ETag})
	u.bytes += size
	return nil
}

func (u *s3Upload) finish(ctx context.Context, last []byte) error {
	if len(last) > 0 || len(u.parts) == 0 {
		if err := u.part(ctx, last); err != nil {
			return err
		}
	}
	r := u.s.request(http.MethodPost, u.name, url.Values{"uploadId": {u.id}})
	r.slow = slowCall
	var err error
	r.body, err = xml.Marshal(struct {
		XMLName xml.Name `xml:"http://s3.amazonaws.com/doc/2006-03-01/ CompleteMultipartUpload"`
		Part    []s3Part
	}{Part: u.parts})
	if err != nil {
		return err
	}
	r.header.Set("Content-Type", "application/xml")
	a, err := u.s.do(ctx, r)
	if statusOf(err) == http.StatusNotFound && a.repeated {
		// the upload is gone: an earlier attempt has completed it, and its answer was lost
		if info, headErr := u.s.head(ctx, u.name); headErr == nil && info.Size == u.bytes {
			return nil
		}
	}
	return err
}

func (u *s3Upload) abort(ctx context.Context) error {
	_, err := u.s.do(ctx, u.s.request(http.MethodDelete, u.name, url.Values{"uploadId": {u.id}}))
	return err
}

func (s *s3) copy(ctx context.Context, from, to Name, size int64) error {
	if size <= maxCopy {
		r := s.request(http.MethodPut, to, nil)
		r.slow = slowCall
		r.header.Set("X-Amz-Copy-Source", escape("/"+from.Bucket+"/"+from.Key))
		_, err := s.do(ctx, r)
		return err
	}
	_, err := s.join(ctx, to, from, "", size, nil)
	return err
}

func (s *s3) extend(ctx context.Context, n Name, old Info, b []byte) (Info, error) {
	return s.join(ctx, n, n, old.Tag, old.Size, b)
}

// send adds an object by reading it, for a store that does not copy parts.
func (u *s3Upload) send(ctx context.Context, from Name, tag string, size int64) error {
	most := min(int64(partOf(maxParts/2)), size)
	if err := u.name.take(most); err != nil {
		return err
	}
	buf := make([]byte, most)
	for offset := int64(0); offset < size; {
		part := buf[:min(int64(len(buf)), size-offset)]
		if left := size - offset - int64(len(part)); left > 0 && left < minExtend {
			part = part[:len(part)/2] // the last part may be the end of what is copied only
		}
		if err := u.s.get(ctx, from, tag, offset, part); err != nil {
			return err
		}
		if err := u.part(ctx, part); err != nil {
			return err
		}
		offset += int64(len(part))
	}
	return nil
}

// join makes an object of another one, with some bytes at its end.
func (s *s3) join(ctx context.Context, to, from Name, tag string, size int64, b []byte) (Info, error) {
	u, err := s.startUpload(ctx, to)
	if err != nil {
		return Info{}, err
	}
	for offset, part := int64(0), int64(0); offset < size && err == nil; offset += part {
		part = int64(copyPart)
		if left := size - offset; left < 2*part {
			part = left // no part but the last is small
		}
		err = u.copyRange(ctx, from, tag, offset, part)
	}
	if errors.Is(err, errNoPartCopy) {
		u.parts, u.bytes = nil, 0
		err = u.send(ctx, from, tag, size)
	}
	if err == nil {
		err = u.finish(ctx, b)
	}
	if err != nil {
		_ = u.abort(context.WithoutCancel(ctx)) // the store removes what stays by its own rules
		return Info{}, err
	}
	return s.head(ctx, to)
}
