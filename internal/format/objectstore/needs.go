package objectstore

import (
	"cmp"
	"net/url"
	"path/filepath"
	"strconv"
)

// Needs are what a client uses of its machine, for a process that is restricted.
type Needs struct {
	Ports []uint16 // TCP ports of servers
	Files []string // files and folders that it reads; some may not exist
}

// trusted are the folders in which systems have the certificates that they trust.
var trusted = []string{"/etc/ssl", "/etc/pki", "/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/etc/ca-certificates"}

// NeedsOf returns what the client for a scheme uses in the environment of the process.
func NeedsOf(scheme string) (Needs, error) {
	e, _ := newEnvironment()
	home := e.get("HOME")
	n := Needs{Files: trusted}
	var u url.URL
	switch scheme {
	case S3:
		e.readProfile()
		if err := e.endpoint(&u); err != nil {
			return n, err
		}
		n.Files = append(n.Files,
			cmp.Or(e.get("AWS_CONFIG_FILE"), filepath.Join(home, ".aws", "config")),
			cmp.Or(e.get("AWS_SHARED_CREDENTIALS_FILE"), filepath.Join(home, ".aws", "credentials")))
		for _, name := range []string{"AWS_CA_BUNDLE", "S3_CA_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE", "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"} {
			if file := e.get(name); file != "" {
				n.Files = append(n.Files, file)
			}
		}
	case GCS:
		u.Scheme = "https"
		if host := e.get("STORAGE_EMULATOR_HOST"); host != "" {
			if err := parseEmulator(host, &u); err != nil {
				return n, err
			}
		}
		dir := cmp.Or(e.get("CLOUDSDK_CONFIG"), filepath.Join(home, ".config", "gcloud"))
		n.Files = append(n.Files, cmp.Or(e.get("GOOGLE_APPLICATION_CREDENTIALS"), filepath.Join(dir, "application_default_credentials.json")))
	}
	const https, http = 443, 80
	n.Ports = []uint16{https, http} // of the store, and of the services that give credentials
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		n.Ports = append(n.Ports, uint16(port))
	}
	return n, nil
}
