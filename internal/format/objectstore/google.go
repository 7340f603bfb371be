package objectstore

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/jwt"

	"github.com/weft-ml/weft/status"
)

// parseEmulator sets the address of an emulator of Google Cloud Storage, which may have no scheme.
func parseEmulator(host string, u *url.URL) error {
	text := host
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	parsed, err := url.Parse(strings.TrimRight(text, "/"))
	if err != nil || parsed.Host == "" || parsed.Scheme != "http" && parsed.Scheme != "https" {
		return status.InvalidArgumentf("%q is not the address of an emulator (STORAGE_EMULATOR_HOST)", host)
	}
	parsed.Path = strings.TrimSuffix(parsed.Path, api)
	*u = *parsed
	return nil
}

// googleToken finds a token where Google's programs look for credentials, in this order: a token in
// the environment, a file that the environment names, the file of gcloud, the machine.
type googleToken struct {
	e      *environment
	client *http.Client

	mu     sync.Mutex
	source oauth2.TokenSource // of a file; nil before its use, or without one; guarded by mu
	none   time.Time          // when no credentials were found; guarded by mu
	token  string             // of the machine; guarded by mu
	until  time.Time          // when token is renewed; guarded by mu
}

const scope = "https://www.googleapis.com/auth/devstorage.read_write"

func newGoogleToken(e *environment, client *http.Client) *googleToken {
	return &googleToken{e: e, client: client}
}

// get returns a valid token, or "" for anonymous requests.
func (t *googleToken) get(ctx context.Context) (string, error) {
	if token := t.e.get("GOOGLE_AUTH_TOKEN_FOR_TESTING"); token != "" {
		return token, nil
	}
	if t.e.get("STORAGE_EMULATOR_HOST") != "" {
		return "", nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.source == nil {
		if err := t.readFile(); err != nil {
			return "", err
		}
	}
	if t.source == nil {
		return t.ofMachine(ctx), nil
	}
	token, err := t.source.Token()
	if err != nil {
		return "", status.Errorf(status.Unauthenticated, "credentials of Google Cloud Storage: %w", err)
	}
	return token.AccessToken, nil
}

// readFile sets the source of tokens from a file of credentials, if there is one.
func (t *googleToken) readFile() error {
	file := t.e.get("GOOGLE_APPLICATION_CREDENTIALS")
	named := file != ""
	if !named {
		dir := t.e.get("CLOUDSDK_CONFIG")
		if dir == "" {
			dir = filepath.Join(t.e.get("HOME"), ".config", "gcloud")
		}
		file = filepath.Join(dir, "application_default_credentials.json")
	}
	text, err := os.ReadFile(file)
	if err != nil && named {
		return status.Errorf(status.Unauthenticated, "GOOGLE_APPLICATION_CREDENTIALS: %w", err)
	}
	if err != nil {
		return nil
	}
	var c struct {
		Type         string `json:"type"`
		Email        string `json:"client_email"`
		Key          string `json:"private_key"`
		KeyID        string `json:"private_key_id"`
		TokenURI     string `json:"token_uri"`
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		RefreshToken string `json:"refresh_token"`
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return status.Errorf(status.Unauthenticated, "%s is no file of credentials: %w", file, err)
	}
	if c.TokenURI == "" {
		c.TokenURI = "https://oauth2.googleapis.com/token"
	}
	client := *t.client
	client.Timeout = roleTimeout
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, &client)
	switch c.Type {
	case "service_account":
		config := &jwt.Config{Email: c.Email, PrivateKey: []byte(c.Key), PrivateKeyID: c.KeyID, TokenURL: c.TokenURI, Scopes: []string{scope}}
		t.source = config.TokenSource(ctx)
	case "authorized_user":
		config := &oauth2.Config{ClientID: c.ClientID, ClientSecret: c.ClientSecret, Endpoint: oauth2.Endpoint{TokenURL: c.TokenURI}}
		t.source = config.TokenSource(ctx, &oauth2.Token{RefreshToken: c.RefreshToken})
	default:
		return status.Errorf(status.Unauthenticated, "%s: credentials of the type %q are not supported; service_account and authorized_user are", file, c.Type)
	}
	return nil
}

// ofMachine returns the token of a virtual machine, or "". The caller holds mu.
func (t *googleToken) ofMachine(ctx context.Context) string {
	now := time.Now()
	if t.token != "" && now.Before(t.until) {
		return t.token
	}
	if t.e.get("NO_GCE_CHECK") != "" || !t.none.IsZero() && now.Sub(t.none) < lookAgain {
		return ""
	}
	host := t.e.get("GCE_METADATA_HOST")
	if host == "" {
		host = "169.254.169.254"
	}
	b, err := (&credentials{e: t.e, client: t.client}).fetch(ctx, metadataTimeout, http.MethodGet,
		"http://"+host+"/computeMetadata/v1/instance/service-accounts/default/token", map[string]string{"Metadata-Flavor": "Google"})
	var answer struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int    `json:"expires_in"`
	}
	if err != nil || json.Unmarshal(b, &answer) != nil || answer.AccessToken == "" {
		t.none = now
		return ""
	}
	t.token, t.until = answer.AccessToken, now.Add(time.Duration(answer.ExpiresIn)*time.Second-renewBefore)
	return t.token
}
