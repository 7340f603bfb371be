package trust_test

import (
	"crypto/x509"
	"net/url"
	"strings"
	"testing"

	"github.com/weft-ml/weft/internal/trust"
)

func certificate(t testing.TB, uris, dns, emails []string) *x509.Certificate {
	t.Helper()
	c := &x509.Certificate{DNSNames: dns, EmailAddresses: emails}
	for _, u := range uris {
		parsed, err := url.Parse(u)
		if err != nil {
			t.Fatal(err)
		}
		c.URIs = append(c.URIs, parsed)
	}
	return c
}

func TestIdentify(t *testing.T) {
	f, err := trust.ParseFile(`# names of a company
uri    spiffe://corp/ns/train/sa/worker-*  task worker/*
dns    PS-?.train.svc.cluster.local        task ps/*
uri    spiffe://corp/ns/research/*         client research
uri    spiffe://corp/ns/*/sa/ops           operator
email  *@corp.example                      observer
dns    api.corp.example                    client
`)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		uris, dns, emails []string
		want              string // a part of the error if it starts with "!"
	}{
		{uris: []string{"spiffe://corp/weft/train/job/worker/task/12"}, want: "task worker/12"},
		{uris: []string{"spiffe://corp/weft/train/client/research/alice"}, want: "client research/alice"},
		{uris: []string{"spiffe://corp/weft/train/operator/bob"}, want: "operator bob"},
		{uris: []string{"spiffe://corp/weft/train/observer/prometheus"}, want: "observer prometheus"},
		{uris: []string{"spiffe://corp/ns/train/sa/worker-3"}, want: "task worker/3"},
		{dns: []string{"ps-1.train.svc.cluster.local"}, want: "task ps/1"},
		{dns: []string{"PS-1.TRAIN.svc.cluster.local"}, want: "task ps/1"},
		{uris: []string{"spiffe://corp/ns/research/eve"}, want: "client research/spiffe://corp/ns/research/eve"},
		{uris: []string{"spiffe://corp/ns/any/sa/ops"}, want: "operator spiffe://corp/ns/any/sa/ops"},
		{emails: []string{"carol@corp.example"}, want: "observer carol@corp.example"},
		{dns: []string{"api.corp.example"}, want: "client api.corp.example"},
		// two names of one principal
		{uris: []string{"spiffe://corp/ns/train/sa/worker-3"}, dns: []string{"worker-3"}, want: "task worker/3"},
		// wildcards do not cross / and .
		{uris: []string{"spiffe://corp/ns/train/sa/worker-3/more"}, want: "!no name"},
		{uris: []string{"spiffe://corp/ns/a/b/sa/ops"}, want: "!no name"},
		{dns: []string{"ps-1.x.train.svc.cluster.local"}, want: "!no name"},
		{dns: []string{"ps-11.train.svc.cluster.local"}, want: "!no name"},
		{emails: []string{"carol@x.corp.example"}, want: "!no name"},
		{emails: []string{"a.b@corp.example"}, want: "!no name"},
		// a wildcard that is no number
		{uris: []string{"spiffe://corp/ns/train/sa/worker-x"}, want: `!line 2 of the trust file: "worker/x" is no task`},
		{uris: []string{"spiffe://corp/ns/train/sa/worker-03"}, want: "!is no task"},
		// two roles
		{
			uris: []string{"spiffe://corp/weft/train/job/worker/task/1", "spiffe://corp/weft/train/operator/bob"},
			want: "!names two principals",
		},
		{dns: []string{"ps-1.train.svc.cluster.local"}, emails: []string{"x@corp.example"}, want: "!names two principals"},
		// malformed names of this project's form
		{uris: []string{"spiffe://corp/weft/train/job/worker/task/-1"}, want: "!has no task index"},
		{uris: []string{"spiffe://corp/weft/train/job/worker"}, want: "!names no principal"},
		{uris: []string{"spiffe://corp/weft/train/root/x"}, want: "!names no principal"},
		{uris: []string{"spiffe://corp/weft/train/client//x"}, want: "!is malformed"},
		{uris: []string{"spiffe://corp/weft/../client/a/x"}, want: "!is malformed"},
		{uris: []string{"https://corp/weft/train/operator/bob"}, want: "!no name"},
		{want: "!no subject alternative names"},
	} {
		p, err := f.Identify(certificate(t, tt.uris, tt.dns, tt.emails))
		got := ""
		if err == nil {
			got = p.String()
		}
		if text, bad := strings.CutPrefix(tt.want, "!"); bad && (err == nil || !strings.Contains(err.Error(), text)) || !bad && got != tt.want {
			t.Errorf("%v %v %v: got %q, %v; want %s", tt.uris, tt.dns, tt.emails, got, err, tt.want)
		}
	}
	// the common name is not a name
	c := certificate(t, nil, nil, nil)
	c.Subject.CommonName = "ps-1.train.svc.cluster.local"
	if p, err := f.Identify(c); err == nil {
		t.Errorf("the common name makes a certificate that of %v", p)
	}
}

func TestParseFileRejects(t *testing.T) {
	for text, want := range map[string]string{
		"ip 1.2.3.4 client x":      "is no kind of names (uri, dns or email), and not tenant",
		"uri spiffe://x":           "want a kind",
		"uri a b c d":              "want a kind",
		"uri x root":               "no role",
		"uri x anonymous":          "no role",
		"uri x task":               "a task needs",
		"uri x-* task worker/0":    "a task needs",
		"uri x task worker/*":      "has none",
		"uri x client *":           "has none",
		"uri x task worker":        "is no task",
		"uri x client a/b/c":       "is no client",
		"#\n\nuri x client /b":     "line 3",
		"dns x-* task worker/1*/2": "is no task",
		"tenant a weight":          "want: tenant PATTERN weight FACTOR",
		"tenant a memory 2":        "want: tenant PATTERN weight FACTOR",
		"\ntenant a weight 0":      "line 2: \"0\" is no weight",
		"tenant a weight NaN":      "is no weight",
		"tenant a weight -1":       "is no weight",
		"tenant a weight 1e300":    "is no weight",
	} {
		if _, err := trust.ParseFile(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestWeight(t *testing.T) {
	f, err := trust.ParseFile("tenant research weight 2.5\n# others\ntenant guest-* weight 0.1\ntenant guest-x weight 9\n")
	if err != nil {
		t.Fatal(err)
	}
	for tenant, want := range map[string]float64{"research": 2.5, "guest-x": 0.1, "guest-": 0.1, "other": 1, "": 1} {
		if got := f.Weight(tenant); got != want {
			t.Errorf("%q: got %g, want %g", tenant, got, want)
		}
	}
	if got := (*trust.File)(nil).Weight("research"); got != 1 {
		t.Errorf("without a file: got %g", got)
	}
}

func TestIDsRoundTrip(t *testing.T) {
	for _, id := range []string{
		"spiffe://corp/weft/train/job/worker/task/12", "spiffe://corp/weft/train/client/research/alice",
		"spiffe://corp/weft/train/operator/bob", "spiffe://corp/weft/train/observer/prometheus",
	} {
		p, err := (*trust.File)(nil).Identify(certificate(t, []string{id}, nil, nil))
		if err != nil {
			t.Error(err)
		} else if got := p.ID(); got != id {
			t.Errorf("got %s, want %s", got, id)
		}
	}
}

func TestTable(t *testing.T) {
	seen := map[string]bool{}
	for i := range trust.Methods {
		m := &trust.Methods[i]
		if seen[m.Path] {
			t.Errorf("%s has two rows", m.Path)
		}
		seen[m.Path] = true
		for role := range trust.NumRoles {
			opens := m.Rules[role] == trust.OpenOnly
			if opens != (role == trust.Anonymous && m.Open != "") {
				t.Errorf("%s: the rule of %v and the flag %q disagree", m.Path, role, m.Open)
			}
			if role == trust.Anonymous && m.Rules[role] != trust.Never && !opens {
				t.Errorf("%s is open to callers without a certificate", m.Path)
			}
			var none trust.Policy
			p := &trust.Principal{Role: role}
			rule, err := none.Check(p, m.Path)
			if allowed := m.Rules[role] != trust.Never && !opens; allowed != (err == nil) || allowed && rule != m.Rules[role] {
				t.Errorf("%s by %v: %v, %v", m.Path, role, rule, err)
			}
			open := trust.Policy{HealthOpen: true, MetricsOpen: true}
			if _, err := open.Check(p, m.Path); (err == nil) != (m.Rules[role] != trust.Never) {
				t.Errorf("%s by %v, opened: %v", m.Path, role, err)
			}
		}
	}
	if _, err := (&trust.Policy{}).Check(&trust.Principal{Role: trust.Operator}, "/other.Service/Method"); err == nil {
		t.Error("a method without a row is allowed")
	}
	if found := trust.Find("RunStep"); len(found) != 1 || found[0].Name() != "MasterService/RunStep" {
		t.Errorf("found %v", found)
	}
}

func FuzzParseFile(f *testing.F) {
	f.Add("uri spiffe://corp/ns/train/sa/worker-* task worker/*\nemail *@corp.example observer", "spiffe://corp/ns/train/sa/worker-3")
	f.Add("dns *?*?* client */x", "a.b")
	f.Fuzz(func(t *testing.T, text, name string) {
		file, err := trust.ParseFile(text)
		if err != nil {
			return
		}
		c := &x509.Certificate{DNSNames: []string{name}, EmailAddresses: []string{name}}
		if u, err := url.Parse(name); err == nil {
			c.URIs = []*url.URL{u}
		}
		if p, err := file.Identify(c); err == nil && (p.Role == trust.Anonymous || p.String() == "") {
			t.Errorf("%q is %v", name, p)
		}
	})
}
