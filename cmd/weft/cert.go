package main

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-ml/weft/internal/trust"
	"github.com/weft-ml/weft/internal/trust/issue"
)

// certFlags are the flags of the commands that make certificates.
type certFlags struct {
	dir    string
	days   int
	hosts  []string
	domain string
	name   string // of the cluster
}

func newCert() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "cert",
		Short: "Make the certificates of a cluster",
		Long: "Make a CA for a cluster, and the certificates of its tasks, clients, operators and observers. Files are written to one " +
			"folder: ca.pem and ca.key, and NAME.pem and NAME.key of each certificate. Keep ca.key off the machines of the tasks.",
		Example: "  weft cert ca --dir=certs ps/0 worker/0 worker/1\n  weft cert client --dir=certs research/alice",
		Args:    noArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCertCA(), newCertShow())
	for _, c := range []struct {
		use, short string
		role       trust.Role
	}{
		{"task JOB/INDEX…", "Make the certificates of tasks", trust.Task},
		{"client TENANT/NAME…", "Make the certificates of clients", trust.Client},
		{"operator NAME…", "Make the certificates of operators", trust.Operator},
		{"observer NAME…", "Make the certificates of observers", trust.Observer},
	} {
		var f certFlags
		sub := &cobra.Command{
			Use: c.use, Short: c.short,
			RunE: func(cmd *cobra.Command, args []string) error {
				if len(args) == 0 {
					return usageError{errors.New("a name is missing")}
				}
				ca, err := issue.ReadCA(filepath.Join(f.dir, "ca.pem"), filepath.Join(f.dir, "ca.key"))
				if err != nil {
					return fmt.Errorf("%w; 'weft cert ca' makes a CA", err)
				}
				return f.issue(cmd, ca, c.role, args)
			},
		}
		f.add(sub.Flags(), issue.LeafLife)
		if c.role == trust.Task {
			sub.Flags().StringArrayVar(&f.hosts, "host", nil, "further DNS name or IP address in the certificate; may be repeated")
		}
		cmd.AddCommand(sub)
	}
	return cmd
}

func (f *certFlags) add(flags *pflag.FlagSet, life time.Duration) {
	flags.StringVar(&f.dir, "dir", ".", "folder of the CA and the certificates")
	flags.IntVar(&f.days, "days", int(life.Hours()/24), "life of the certificates, in days")
}

func newCertCA() *cobra.Command {
	var f certFlags
	cmd := &cobra.Command{
		Use:   "ca [JOB/INDEX…]",
		Short: "Make a CA, and the certificates of tasks that are named",
		RunE: func(cmd *cobra.Command, args []string) error {
			ca, err := f.makeCA(cmd)
			if err != nil {
				return err
			}
			f.days = int(issue.LeafLife.Hours() / 24)
			return f.issue(cmd, ca, trust.Task, args)
		},
	}
	f.add(cmd.Flags(), issue.CALife)
	cmd.Flags().Lookup("days").Usage = "life of the CA, in days; certificates of tasks live for 90 days"
	cmd.Flags().StringVar(&f.domain, "domain", "weft.local", "trust domain: the first part of all names")
	cmd.Flags().StringVar(&f.name, "cluster", "default", "name of the cluster")
	return cmd
}

// makeCA writes a new CA. It does not replace one.
func (f *certFlags) makeCA(cmd *cobra.Command) (*issue.CA, error) {
	certFile, keyFile := filepath.Join(f.dir, "ca.pem"), filepath.Join(f.dir, "ca.key")
	for _, name := range []string{certFile, keyFile} {
		if _, err := os.Lstat(name); err == nil {
			return nil, fmt.Errorf("%s exists: it is not replaced", name)
		}
	}
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return nil, err
	}
	ca, pair, err := issue.NewCA(f.domain, f.name, time.Now(), f.life())
	if err != nil {
		return nil, usageError{err}
	}
	if err := pair.Write(certFile, keyFile); err != nil {
		return nil, err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "%s: CA of spiffe://%s/weft/%s\n", certFile, f.domain, f.name)
	return ca, nil
}

func (f *certFlags) life() time.Duration { return time.Duration(f.days) * 24 * time.Hour }

// issue writes the certificates of principals.
func (f *certFlags) issue(cmd *cobra.Command, ca *issue.CA, role trust.Role, names []string) error {
	if f.days < 1 {
		return usageError{errors.New("--days must be at least 1")}
	}
	for _, name := range names {
		p := trust.Principal{Role: role, Name: name}
		var err error
		switch role {
		case trust.Task:
			p.Task, err = parseTask(name)
		case trust.Client:
			var ok bool
			if p.Tenant, p.Name, ok = strings.Cut(name, "/"); !ok {
				err = fmt.Errorf("%q is no client: want tenant/name", name)
			}
		case trust.Operator, trust.Observer, trust.Anonymous, trust.NumRoles:
		}
		if err != nil {
			return usageError{err}
		}
		pair, err := ca.Issue(p, f.hosts, time.Now(), f.life())
		if err != nil {
			return usageError{err}
		}
		base := filepath.Join(f.dir, strings.ReplaceAll(name, "/", "-"))
		if role == trust.Operator || role == trust.Observer {
			base = filepath.Join(f.dir, role.String()+"-"+name)
		}
		if err := pair.Write(base+".pem", base+".key"); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s.pem: %v\n", base, &p)
	}
	return nil
}

func newCertShow() *cobra.Command {
	trustFile := ""
	cmd := &cobra.Command{
		Use:   "show FILE…",
		Short: "Show what certificates say, and which principals they are",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usageError{errors.New("a file is missing")}
			}
			var rules *trust.File
			if trustFile != "" {
				text, err := os.ReadFile(trustFile)
				if err != nil {
					return err
				}
				if rules, err = trust.ParseFile(string(text)); err != nil {
					return fmt.Errorf("%s: %w", trustFile, err)
				}
			}
			for _, name := range args {
				if err := showCertificate(cmd, name, rules); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&trustFile, "trust", "", "file that maps names in certificates to principals")
	return cmd
}

func showCertificate(cmd *cobra.Command, name string, rules *trust.File) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" {
		return errors.New("no certificate in PEM")
	}
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	is := ""
	switch p, err := rules.Identify(c); {
	case c.IsCA:
		is = "a CA"
	case err != nil:
		is = "refused: " + err.Error()
	default:
		is = p.String()
	}
	key := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "%s\n  is       %s\n", name, is)
	for _, u := range c.URIs {
		fmt.Fprintf(out, "  uri      %s\n", u)
	}
	for _, d := range c.DNSNames {
		fmt.Fprintf(out, "  dns      %s\n", d)
	}
	for _, e := range c.EmailAddresses {
		fmt.Fprintf(out, "  email    %s\n", e)
	}
	fmt.Fprintf(out, "  valid    %s to %s\n  serial   %s\n  key      %s\n", c.NotBefore.UTC().Format(time.RFC3339),
		c.NotAfter.UTC().Format(time.RFC3339), c.SerialNumber.Text(16), hex.EncodeToString(key[:]))
	return nil
}
