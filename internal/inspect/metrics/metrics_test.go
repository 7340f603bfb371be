package metrics

import (
	"io"
	"net"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// limited returns counts of limits.
func limited() map[string]uint64 { return map[string]uint64{"streams": 7, "idle": 1} }

// TestPage requests the page as a scraper does.
func TestPage(t *testing.T) {
	l, err := Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() { Serve(l, limited) })
	defer serving.Wait()
	defer l.Close()
	runtime.GC()
	for request, want := range map[string]string{
		"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n": "HTTP/1.1 200 OK\r\n",
		"HEAD /metrics?a=b HTTP/1.1\r\n\r\n":       "HTTP/1.1 200 OK\r\n",
		"GET / HTTP/1.0\n\n":                       "HTTP/1.1 404 ",
		"POST /metrics HTTP/1.1\r\n\r\n":           "HTTP/1.1 405 ",
		"GET /metrics HTTP/1.1\r\nHost: x\r\n":     "", // incomplete
	} {
		answer := ask(t, l.Addr().String(), request)
		if !strings.HasPrefix(answer, want) || want == "" && answer != "" {
			t.Errorf("%q is answered with %q", request, answer)
		}
		head, page, _ := strings.Cut(answer, "\r\n\r\n")
		if strings.HasPrefix(request, "GET /metrics") && want != "" {
			checkPage(t, page)
		} else if !strings.Contains(head, "404") && page != "" {
			t.Errorf("%q has the body %q", request, page)
		}
	}
}

func ask(t *testing.T, address, request string) string {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil { //nolint:forcetypeassert // of the network "tcp"
		t.Fatal(err)
	}
	answer, err := io.ReadAll(conn)
	if err != nil {
		t.Fatal(err)
	}
	return string(answer)
}

// checkPage checks that every line is well-formed, and that the metrics of a process that has
// collected garbage are there and not 0.
func checkPage(t *testing.T, page string) {
	t.Helper()
	line := regexp.MustCompile(`^(# (HELP|TYPE) \w+ .+|\w+({\w+="[0-9a-z.]+"})? [0-9.e+-]+)$`)
	for l := range strings.Lines(page) {
		if !line.MatchString(strings.TrimSuffix(l, "\n")) {
			t.Errorf("malformed: %q", l)
		}
	}
	for _, name := range []string{
		"weft_cpu_seconds_total", "weft_gc_cpu_seconds_total", "weft_gc_cycles_total", "weft_heap_live_bytes",
		"weft_heap_goal_bytes", "weft_memory_bytes", "weft_goroutines", `weft_gc_pause_seconds{quantile="0.99"}`, `weft_limited_total{limit="streams"}`,
		"weft_gc_pause_seconds_sum", "weft_gc_pause_seconds_count",
	} {
		if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(name) + ` .*[1-9]`).MatchString(page) {
			t.Errorf("there is no %s in\n%s", name, page)
		}
	}
}

func TestListenRefusesOtherInterfaces(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "nonsense"} {
		if l, err := Listen(address, false); err == nil {
			l.Close()
			t.Errorf("Listen(%q) succeeds", address)
		}
	}
}

// scarce is a listener whose first Accept fails for lack of descriptors.
type scarce struct {
	net.Listener
	accepted int
}

func (l *scarce) Accept() (net.Conn, error) {
	if l.accepted++; l.accepted == 1 {
		return nil, syscall.EMFILE
	}
	return l.Listener.Accept()
}

// TestServeContinuesAfterAcceptError requests the page after an Accept that failed.
func TestServeContinuesAfterAcceptError(t *testing.T) {
	l, err := Listen("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		defer l.Close() // ends a connection that was not accepted
		Serve(&scarce{Listener: l}, limited)
	})
	defer serving.Wait()
	defer l.Close()
	if answer := ask(t, l.Addr().String(), "GET /metrics HTTP/1.0\r\n\r\n"); !strings.HasPrefix(answer, "HTTP/1.1 200 OK\r\n") {
		t.Errorf("got %q", answer)
	}
}
