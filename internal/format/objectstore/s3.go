package objectstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// s3 makes the calls of S3.
type s3 struct {
	calls       *caller
	signer      *v4.Signer
	credentials *credentials
	endpoint    url.URL // "" as the host for Amazon's
	region      string
	now         func() time.Time

	mu      sync.Mutex
	regions map[string]string // of buckets in other regions; guarded by mu
}

func newS3(e *environment) (*s3, error) {
	s := &s3{region: e.region(), now: time.Now, regions: map[string]string{}}
	s.signer = v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true })
	if err := e.endpoint(&s.endpoint); err != nil {
		return nil, err
	}
	client, err := e.httpClient()
	if err != nil {
		return nil, err
	}
	s.calls = &caller{
		client: client, attempts: e.attempts(), backoff: e.backoff, stall: e.stall(), authorize: s.sign, explain: explainS3, repair: s.redirect,
	}
	s.credentials = newCredentials(e, client)
	return s, nil
}

// regionOf returns the region of a bucket as far as it is known.
func (s *s3) regionOf(bucket string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if region := s.regions[bucket]; region != "" {
		return region
	}
	return s.region
}

// request returns a call for an object, with the parameters of its query.
func (s *s3) request(method string, n Name, query url.Values) *request {
	r := &request{name: n, method: method, header: http.Header{}}
	s.address(r)
	r.url.RawQuery = query.Encode()
	return r
}

// address sets the host and the path of a call: Amazon's has the bucket in the name of the host.
// That does not work for names with dots, for which its certificate is not valid.
func (s *s3) address(r *request) {
	n, path := r.name, "/"+r.name.Key
	r.url.Scheme, r.url.Host = s.endpoint.Scheme, s.endpoint.Host
	if r.url.Host == "" {
		r.url.Host = "s3." + s.regionOf(n.Bucket) + ".amazonaws.com"
		if strings.HasPrefix(s.regionOf(n.Bucket), "cn-") {
			r.url.Host += ".cn"
		}
	}
	if s.endpoint.Host == "" && !strings.ContainsAny(n.Bucket, "._") && strings.ToLower(n.Bucket) == n.Bucket {
		r.url.Host = n.Bucket + "." + r.url.Host
	} else {
		path = s.endpoint.Path + "/" + n.Bucket + path
	}
	r.url.Path, r.url.RawPath = path, escape(path)
}

// escape encodes a path as S3's signatures do.
func escape(path string) string {
	var b strings.Builder
	for i := range len(path) {
		c := path[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-._~/", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// sign implements caller.authorize. Without credentials requests are anonymous.
func (s *s3) sign(ctx context.Context, req *http.Request, body []byte) error {
	c, err := s.credentials.get(ctx)
	if err != nil || c.AccessKeyID == "" {
		return err
	}
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	req.Header.Set("X-Amz-Content-Sha256", hash)
	return s.signer.SignHTTP(ctx, aws.Credentials{AccessKeyID: c.AccessKeyID, SecretAccessKey: c.SecretAccessKey, SessionToken: c.SessionToken},
		req, hash, "s3", s.regionOf(bucketOf(req.Context())), s.now())
}

// bucketKey is the key of the bucket in the context of a request.
type bucketKey struct{}

func bucketOf(ctx context.Context) string {
	bucket, _ := ctx.Value(bucketKey{}).(string)
	return bucket
}

func (s *s3) do(ctx context.Context, r *request) (*answer, error) {
	return s.calls.do(context.WithValue(ctx, bucketKey{}, r.name.Bucket), r)
}

// redirect implements caller.repair: it remembers the region of a bucket if the answer names
// another one, and forgets credentials that have expired.
func (s *s3) redirect(r *request, a *answer) bool {
	region := a.header.Get("X-Amz-Bucket-Region")
	var e s3Error
	if xml.Unmarshal(a.body, &e) == nil && e.Code == "ExpiredToken" {
		return s.credentials.forget()
	}
	if region == "" {
		region = e.Region
	}
	wrong := a.status == http.StatusMovedPermanently || a.status == http.StatusTemporaryRedirect || a.status == http.StatusBadRequest
	if !wrong || region == "" || region == s.regionOf(r.name.Bucket) {
		return false
	}
	s.mu.Lock()
	s.regions[r.name.Bucket] = region
	s.mu.Unlock()
	s.address(r)
	return true
}

// s3Error is the body of an answer that is not a success.
type s3Error struct {
	XMLName xml.Name `xml:"Error"`
	Code    string
	Message string
	Region  string
}

func explainS3(a *answer) (code, text string) {
	var e s3Error
	if xml.Unmarshal(a.body, &e) != nil {
		return "", ""
	}
	if id := a.header.Get("X-Amz-Request-Id"); id != "" {
		e.Message += " (request " + id + ")"
	}
	return e.Code, e.Message
}

func (s *s3) head(ctx context.Context, n Name) (Info, error) {
	a, err := s.do(ctx, s.request(http.MethodHead, n, nil))
	if err != nil {
		return Info{}, err
	}
	return infoOf(a.header), nil
}

func infoOf(h http.Header) Info {
	size, _ := strconv.ParseInt(h.Get("Content-Length"), 10, 64)
	at, _ := http.ParseTime(h.Get("Last-Modified"))
	return Info{Size: size, Time: at, Tag: h.Get("Etag")}
}

func (s *s3) get(ctx context.Context, n Name, tag string, offset int64, b []byte) error {
	r := s.request(http.MethodGet, n, nil)
	r.into, r.offset = b, offset
	if tag != "" {
		r.header.Set("If-Match", tag)
	}
	_, err := s.do(ctx, r)
	return err
}

// s3List is the answer to ListObjectsV2.
type s3List struct {
	EncodingType          string
	IsTruncated           bool
	NextContinuationToken string
	Contents              []struct {
		Key          string
		LastModified time.Time
		ETag         string
		Size         int64
	}
	CommonPrefixes []struct{ Prefix string }
}

func (s *s3) list(ctx context.Context, n Name, folders bool, from string, limit int) (page, error) {
	query := url.Values{"list-type": {"2"}, "prefix": {n.Key}, "max-keys": {strconv.Itoa(limit)}, "encoding-type": {"url"}}
	if folders {
		query.Set("delimiter", "/")
	}
	if from != "" {
		query.Set("continuation-token", from)
	}
	r := s.request(http.MethodGet, Name{n.Scheme, n.Bucket, ""}, query)
	r.about = Name{n.Scheme, n.Bucket, strings.TrimSuffix(n.Key, "/")}
	a, err := s.do(ctx, r)
	if err != nil {
		return page{}, err
	}
	var l s3List
	if err := xml.Unmarshal(a.body, &l); err != nil {
		return page{}, r.error(fmt.Errorf("the list of objects is malformed: %w", err), 1, 0)
	}
	decode := func(key string) string {
		if l.EncodingType != "url" {
			return key
		}
		if plain, err := url.QueryUnescape(key); err == nil {
			return plain
		}
		return key
	}
	var p page
	for _, o := range l.Contents {
		p.entries = append(p.entries, Entry{Name: decode(o.Key), Info: Info{o.Size, o.LastModified, o.ETag}})
	}
	for _, o := range l.CommonPrefixes {
		p.entries = append(p.entries, Entry{Name: decode(o.Prefix), Folder: true})
	}
	if l.IsTruncated {
		p.next = l.NextContinuationToken
	}
	return p, nil
}

func (s *s3) put(ctx context.Context, n Name, b []byte) (Info, error) {
	r := s.request(http.MethodPut, n, nil)
	r.body = b
	r.header.Set("Content-Type", "application/octet-stream")
	a, err := s.do(ctx, r)
	if err != nil {
		return Info{}, err
	}
	return Info{Size: int64(len(b)), Time: s.now(), Tag: a.header.Get("Etag")}, nil
}

func (s *s3) remove(ctx context.Context, n Name) error {
	_, err := s.do(ctx, s.request(http.MethodDelete, n, nil))
	return err
}
