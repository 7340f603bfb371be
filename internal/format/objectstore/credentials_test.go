package objectstore

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weft-ml/weft/status"
)

// isolate removes the settings of the user from the environment.
func isolate(t *testing.T) (home string) {
	t.Helper()
	for _, name := range variables {
		t.Setenv(name, "")
	}
	home = t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	t.Cleanup(CloseIdleConnections)
	return home
}

func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// s3Of returns a client in the environment of the test.
func s3Of(t *testing.T) *s3 {
	t.Helper()
	s, err := serviceOf(S3)
	if err != nil {
		t.Fatal(err)
	}
	return s.(*s3)
}

func keysOf(t *testing.T) string {
	t.Helper()
	k, err := s3Of(t).credentials.get(t.Context())
	if err != nil {
		return err.Error()
	}
	return strings.Join([]string{k.AccessKeyID, k.SecretAccessKey, k.SessionToken}, " ")
}

func TestCredentials(t *testing.T) {
	home := isolate(t)
	if got := keysOf(t); got != "  " {
		t.Errorf("without credentials: %q", got)
	}
	writeFile(t, filepath.Join(home, ".aws/credentials"), "[default]\naws_access_key_id = a\naws_secret_access_key= b\n\n[ other ]\naws_access_key_id=c\naws_secret_access_key=d\naws_session_token=e\n")
	writeFile(t, filepath.Join(home, ".aws/config"), "# comment\n[default]\nregion = r1\ns3 =\n  addressing_style = path\n[profile other]\nregion=r2\nendpoint_url = http://host:1/path/\n[profile sso]\nsso_session = x\n")
	t.Setenv("AWS_MAX_ATTEMPTS", "3") // the environment differs
	if got := keysOf(t) + s3Of(t).region; got != "a b r1" {
		t.Errorf("the default profile: %q", got)
	}
	t.Setenv("AWS_PROFILE", "other")
	if got := keysOf(t) + " " + s3Of(t).region + " " + s3Of(t).endpoint.String(); got != "c d e r2 http://host:1/path" {
		t.Errorf("another profile: %q", got)
	}
	for _, profile := range []string{"sso", "none"} {
		t.Setenv("AWS_PROFILE", profile)
		if _, err := s3Of(t).credentials.get(t.Context()); status.CodeOf(err) != status.Unauthenticated || !strings.Contains(err.Error(), profile) {
			t.Errorf("the profile %s: %v", profile, err)
		}
	}
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "y")
	t.Setenv("AWS_REGION", "r3")
	if got := keysOf(t) + s3Of(t).region; got != "x y r3" {
		t.Errorf("the environment: %q", got)
	}
}

// TestTemporaryCredentials asks the services of Amazon for credentials.
func TestTemporaryCredentials(t *testing.T) {
	home := isolate(t)
	const answer = `{"AccessKeyId": "%s", "SecretAccessKey": "s", "Token": "t", "Expiration": "2100-01-01T00:00:00Z"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/task" && r.Header.Get("Authorization") == "secret":
			fmt.Fprintf(w, answer, "container")
		case r.URL.Path == "/latest/api/token" && r.Method == http.MethodPut:
			fmt.Fprint(w, "token")
		case r.Header.Get("X-Aws-Ec2-Metadata-Token") == "token" && strings.HasSuffix(r.URL.Path, "security-credentials/"):
			fmt.Fprint(w, "role\n")
		case r.Header.Get("X-Aws-Ec2-Metadata-Token") == "token" && strings.HasSuffix(r.URL.Path, "security-credentials/role"):
			fmt.Fprintf(w, answer, "machine")
		case r.FormValue("WebIdentityToken") == "identity" && r.FormValue("RoleArn") == "arn:aws:iam::1:role/r":
			fmt.Fprint(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>
				<SessionToken>t</SessionToken><SecretAccessKey>s</SecretAccessKey><Expiration>2100-01-01T00:00:00Z</Expiration><AccessKeyId>role</AccessKeyId>
				</Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`)
		default:
			w.WriteHeader(http.StatusForbidden)
		}
	}))
	defer server.Close()
	t.Setenv("AWS_EC2_METADATA_DISABLED", "")
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", server.URL)
	if got := keysOf(t); got != "machine s t" {
		t.Errorf("of the machine: %q", got)
	}
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", server.URL+"/task")
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", writeFile(t, home+"/token", "secret\n"))
	if got := keysOf(t); got != "container s t" {
		t.Errorf("of the container: %q", got)
	}
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", "")
	if got := keysOf(t); !strings.Contains(got, "credentials of the container: GET") || !strings.Contains(got, "403") {
		t.Errorf("of a container without the token: %q", got)
	}
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", writeFile(t, home+"/identity", "identity\n"))
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")
	t.Setenv("AWS_ENDPOINT_URL_STS", server.URL)
	if got := keysOf(t); got != "role s t" {
		t.Errorf("of a role: %q", got)
	}
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", writeFile(t, home+"/wrong", "secret-identity"))
	if got := keysOf(t); !strings.Contains(got, "arn:aws:iam::1:role/r") || strings.Contains(got, "secret-identity") {
		t.Errorf("of a role that is refused: %q", got)
	}
}

// TestAddresses compares the addresses of calls.
func TestAddresses(t *testing.T) {
	isolate(t)
	for _, test := range []struct{ endpoint, region, bucket, want string }{
		{"", "eu-west-1", "bucket", "https://bucket.s3.eu-west-1.amazonaws.com/a%20b"},
		{"", "cn-north-1", "bucket", "https://bucket.s3.cn-north-1.amazonaws.com.cn/a%20b"},
		{"", "eu-west-1", "bucket.with.dots", "https://s3.eu-west-1.amazonaws.com/bucket.with.dots/a%20b"},
		{"http://host:9000/", "", "bucket", "http://host:9000/bucket/a%20b"},
		{"host:9000", "", "bucket", "https://host:9000/bucket/a%20b"},
	} {
		t.Setenv("S3_ENDPOINT", test.endpoint)
		t.Setenv("AWS_REGION", test.region)
		if got := s3Of(t).request(http.MethodGet, Name{S3, test.bucket, "a b"}, nil).url.String(); got != test.want {
			t.Errorf("%+v: got %s", test, got)
		}
	}
	t.Setenv("S3_ENDPOINT", "ftp://host")
	if _, err := serviceOf(S3); status.CodeOf(err) != status.InvalidArgument {
		t.Errorf("the address of no store: %v", err)
	}
}

// TestOtherRegion follows the answer of a bucket in another region.
func TestOtherRegion(t *testing.T) {
	isolate(t)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.Contains(r.Header.Get("Authorization"), "/eu-north-1/s3/") {
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprint(w, "<Error><Code>AuthorizationHeaderMalformed</Code><Region>eu-north-1</Region></Error>")
		}
	}))
	defer server.Close()
	t.Setenv("AWS_ENDPOINT_URL", server.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "a")
	for range 2 {
		if _, err := s3Of(t).put(t.Context(), Name{S3, "b", "k"}, nil); err != nil {
			t.Error(err)
		}
	}
}

// TestGoogleCredentials exchanges the key of a service account, and the token of a user.
func TestGoogleCredentials(t *testing.T) {
	home := isolate(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	var granted []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Path == "/computeMetadata/v1/instance/service-accounts/default/token" && r.Header.Get("Metadata-Flavor") == "Google" {
			fmt.Fprint(w, `{"access_token": "of-machine", "expires_in": 3600}`)
			return
		}
		granted = append(granted, r.FormValue("grant_type")+" "+r.FormValue("refresh_token"))
		fmt.Fprint(w, `{"access_token": "of-file", "expires_in": 3600, "token_type": "Bearer"}`)
	}))
	defer server.Close()
	token := func() string {
		t.Helper()
		s, err := serviceOf(GCS)
		if err != nil {
			t.Fatal(err)
		}
		text, err := s.(*gcs).token.get(t.Context())
		if err != nil {
			return err.Error()
		}
		return text
	}
	t.Setenv("GCE_METADATA_HOST", strings.TrimPrefix(server.URL, "http://"))
	if got := token(); got != "of-machine" {
		t.Errorf("of the machine: %q", got)
	}
	private := pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})
	account, _ := json.Marshal(map[string]string{
		"type": "service_account", "client_email": "a@b", "private_key": string(private), "token_uri": server.URL,
	})
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", writeFile(t, home+"/account.json", string(account)))
	if got := token(); got != "of-file" {
		t.Errorf("of a service account: %q", got)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", writeFile(t, home+"/user.json", `{"type": "authorized_user", "refresh_token": "r", "token_uri": "`+server.URL+`"}`))
	if got := token(); got != "of-file" {
		t.Errorf("of a user: %q", got)
	}
	if want := "[urn:ietf:params:oauth:grant-type:jwt-bearer  refresh_token r]"; fmt.Sprint(granted) != want {
		t.Errorf("granted %v", granted)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", writeFile(t, home+"/external.json", `{"type": "external_account"}`))
	if got := token(); !strings.Contains(got, `"external_account" are not supported`) {
		t.Errorf("of another type: %q", got)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", home+"/none.json")
	if got := token(); !strings.Contains(got, "GOOGLE_APPLICATION_CREDENTIALS") {
		t.Errorf("without the file: %q", got)
	}
}

// TestWaits checks the bounds of the waits between attempts.
func TestWaits(t *testing.T) {
	c := &caller{backoff: defaultBackoff}
	for attempt := 1; attempt < 40; attempt++ {
		bound := min(defaultBackoff<<min(attempt-1, 20), maxBackoff)
		if d := c.wait(attempt, &answer{}); d < bound/2 || d > bound {
			t.Errorf("attempt %d waits %v", attempt, d)
		}
	}
	if d := c.wait(1, &answer{header: http.Header{"Retry-After": {"3"}}}); d != 3*time.Second {
		t.Errorf("the store asks for 3 s, and the wait is %v", d)
	}
}
