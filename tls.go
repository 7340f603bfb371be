package weft

import (
	"log/slog"

	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/internal/transport/secure"
	"github.com/weft-ml/weft/status"
)

// TLS names the files with the certificates of a client, in PEM. They are read again when they have
// changed and the client connects again.
type TLS struct {
	Cert, Key string // certificate with its intermediates, and private key
	CA        string // certificates that sign those of the tasks
	// Task is the name of the task that must answer, "job/index". If it is empty, any task of the
	// cluster may, or a server whose certificate has the host name of the target.
	Task string
	// Trust is a file that maps names in certificates to tasks; "" if the names are those that
	// "weft cert" gives.
	Trust string
}

// WithTLS uses TLS with a client certificate for the connection to a target.
func WithTLS(t TLS) TargetOption {
	return targetOption(func(s *settings) error {
		if t.Cert == "" || t.Key == "" || t.CA == "" {
			return status.InvalidArgumentf("TLS needs a certificate, its key and the certificate of a CA")
		}
		if t.Task != "" {
			if _, err := cluster.ParseTask(taskName(t.Task)); err != nil {
				return err
			}
		}
		s.tls = &t
		return nil
	})
}

// taskName returns the full name of a task that may be given as "job/index".
func taskName(short string) string {
	for i := len(short) - 1; i >= 0; i-- {
		if short[i] == '/' && i > 0 && short[0] != '/' {
			return "/job:" + short[:i] + "/replica:0/task:" + short[i+1:]
		}
	}
	return short
}

// credentials returns the certificates, and the task that must answer.
func (t *TLS) credentials(log *slog.Logger) (*secure.Credentials, cluster.Task, error) {
	creds, err := secure.New(secure.Files{Cert: t.Cert, Key: t.Key, CA: t.CA, Trust: t.Trust}, log)
	if err != nil {
		return nil, cluster.Task{}, status.FailedPreconditionf("the certificates cannot be used: %w", err)
	}
	var task cluster.Task
	if t.Task != "" {
		task, err = cluster.ParseTask(taskName(t.Task))
	}
	return creds, task, err
}
