package objectstore

import (
	"cmp"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/weft-ml/weft/status"
)

// keys are credentials of S3. Those without an AccessKeyID are those of anonymous requests.
type keys struct {
	AccessKeyID, SecretAccessKey, SessionToken string
	expires                                    time.Time // zero for never
}

// credentials finds the credentials of S3 where Amazon's programs look for them, in this order: the
// environment, the shared files, a token of Kubernetes, the container, the machine.
type credentials struct {
	e      *environment
	client *http.Client

	mu     sync.Mutex
	found  keys      // guarded by mu
	looked time.Time // when found was set; guarded by mu
}

const (
	// renewBefore is the time before the end of credentials at which they are renewed.
	renewBefore = 5 * time.Minute
	// lookAgain is the time after which credentials are looked for again if there were none.
	lookAgain = 5 * time.Minute
	// metadataTimeout bounds a call of the machine's service, which most machines do not have.
	metadataTimeout = time.Second
	roleTimeout     = 30 * time.Second
)

func newCredentials(e *environment, client *http.Client) *credentials {
	return &credentials{e: e, client: client}
}

// get returns valid credentials. It makes requests while it holds the mutex: other callers need the
// same answer.
func (c *credentials) get(ctx context.Context) (keys, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	valid := c.found.AccessKeyID != "" && (c.found.expires.IsZero() || now.Before(c.found.expires.Add(-renewBefore)))
	if valid || c.found.AccessKeyID == "" && !c.looked.IsZero() && now.Sub(c.looked) < lookAgain {
		return c.found, nil
	}
	found, err := c.look(ctx)
	if err != nil {
		return keys{}, err
	}
	c.found, c.looked = found, now
	return found, nil
}

// forget makes the next call look for credentials. It reports whether they may have changed.
func (c *credentials) forget() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	temporary := !c.found.expires.IsZero()
	c.found, c.looked = keys{}, time.Time{}
	return temporary
}

func (c *credentials) look(ctx context.Context) (keys, error) {
	e := c.e
	if id := e.get("AWS_ACCESS_KEY_ID"); id != "" {
		return keys{id, e.get("AWS_SECRET_ACCESS_KEY"), e.get("AWS_SESSION_TOKEN"), time.Time{}}, nil
	}
	p := e.profile
	switch {
	case p["aws_access_key_id"] != "":
		return keys{p["aws_access_key_id"], p["aws_secret_access_key"], p["aws_session_token"], time.Time{}}, nil
	case p["role_arn"] != "" || p["sso_session"] != "" || p["sso_start_url"] != "" || p["credential_process"] != "":
		return keys{}, status.Errorf(status.Unauthenticated, "the profile %q of the shared files has no keys, and roles, single sign-on and programs are not supported; "+
			"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, for instance with 'aws configure export-credentials'", cmp.Or(e.get("AWS_PROFILE"), "default"))
	case e.get("AWS_PROFILE") != "":
		return keys{}, status.Errorf(status.Unauthenticated, "the shared files have no profile %q (AWS_PROFILE)", e.get("AWS_PROFILE"))
	case e.get("AWS_WEB_IDENTITY_TOKEN_FILE") != "" && e.get("AWS_ROLE_ARN") != "":
		return c.role(ctx)
	case e.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI") != "":
		return c.container(ctx)
	case strings.EqualFold(e.get("AWS_EC2_METADATA_DISABLED"), "true"):
		return keys{}, nil
	}
	return c.machine(ctx), nil
}

// fetch makes a call for credentials and returns the body of the answer.
func (c *credentials) fetch(ctx context.Context, timeout time.Duration, method, address string, header map[string]string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	for key, value := range header {
		req.Header.Set(key, value)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxErrorLen))
	if err == nil && resp.StatusCode/100 != 2 {
		err = fmt.Errorf("%s %s: %s", method, req.URL.Host, resp.Status)
	}
	return b, err
}

// temporary are the credentials that services of Amazon give.
type temporary struct {
	AccessKeyID     string `json:"AccessKeyId" xml:"AccessKeyId"`
	SecretAccessKey string
	Token           string `xml:"-"`
	SessionToken    string `json:"-"`
	Expiration      time.Time
}

func (t temporary) keys() (keys, error) {
	if t.AccessKeyID == "" {
		return keys{}, fmt.Errorf("the answer contains no credentials")
	}
	return keys{t.AccessKeyID, t.SecretAccessKey, cmp.Or(t.Token, t.SessionToken), t.Expiration}, nil
}

// role exchanges a token, which Kubernetes gives to a container, for credentials.
func (c *credentials) role(ctx context.Context) (k keys, err error) {
	defer func() {
		if err != nil {
			err = status.Errorf(status.Unauthenticated, "credentials for the role %s (AWS_ROLE_ARN): %w", c.e.get("AWS_ROLE_ARN"), err)
		}
	}()
	token, err := os.ReadFile(c.e.get("AWS_WEB_IDENTITY_TOKEN_FILE"))
	if err != nil {
		return k, err
	}
	query := url.Values{
		"Action": {"AssumeRoleWithWebIdentity"}, "Version": {"2011-06-15"}, "RoleArn": {c.e.get("AWS_ROLE_ARN")},
		"RoleSessionName": {cmp.Or(c.e.get("AWS_ROLE_SESSION_NAME"), "weft")}, "WebIdentityToken": {strings.TrimSpace(string(token))},
	}
	address := cmp.Or(c.e.get("AWS_ENDPOINT_URL_STS"), "https://sts."+c.e.region()+".amazonaws.com")
	b, err := c.fetch(ctx, roleTimeout, http.MethodPost, strings.TrimRight(address, "/")+"/?"+query.Encode(), nil)
	if err != nil {
		if u, ok := err.(*url.Error); ok { //nolint:errorlint // of the client itself; its address has the token
			err = u.Err
		}
		return k, err
	}
	var answer struct {
		Credentials temporary `xml:"AssumeRoleWithWebIdentityResult>Credentials"`
	}
	if err := xml.Unmarshal(b, &answer); err != nil {
		return k, err
	}
	return answer.Credentials.keys()
}

// container asks the service that the environment names.
func (c *credentials) container(ctx context.Context) (k keys, err error) {
	defer func() {
		if err != nil {
			err = status.Errorf(status.Unauthenticated, "credentials of the container: %w", err)
		}
	}()
	address := c.e.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if path := c.e.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		address = "http://169.254.170.2" + path
	}
	header := map[string]string{}
	if token := c.e.get("AWS_CONTAINER_AUTHORIZATION_TOKEN"); token != "" {
		header["Authorization"] = token
	}
	if file := c.e.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
		token, err := os.ReadFile(file)
		if err != nil {
			return k, err
		}
		header["Authorization"] = strings.TrimSpace(string(token))
	}
	b, err := c.fetch(ctx, roleTimeout, http.MethodGet, address, header)
	if err != nil {
		return k, err
	}
	var t temporary
	if err := json.Unmarshal(b, &t); err != nil {
		return k, err
	}
	return t.keys()
}

// machine asks the service of a virtual machine. Without one there are no credentials.
func (c *credentials) machine(ctx context.Context) keys {
	address := strings.TrimRight(cmp.Or(c.e.get("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "http://169.254.169.254"), "/") + "/latest/"
	token, err := c.fetch(ctx, metadataTimeout, http.MethodPut, address+"api/token", map[string]string{"X-Aws-Ec2-Metadata-Token-Ttl-Seconds": "21600"})
	if err != nil {
		return keys{}
	}
	header := map[string]string{"X-Aws-Ec2-Metadata-Token": string(token)}
	roles := address + "meta-data/iam/security-credentials/"
	name, err := c.fetch(ctx, metadataTimeout, http.MethodGet, roles, header)
	if err != nil {
		return keys{}
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(name)), "\n")
	b, err := c.fetch(ctx, metadataTimeout, http.MethodGet, roles+url.PathEscape(first), header)
	if err != nil {
		return keys{}
	}
	var t temporary
	if json.Unmarshal(b, &t) != nil {
		return keys{}
	}
	k, _ := t.keys()
	return k
}
