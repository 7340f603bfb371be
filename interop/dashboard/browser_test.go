package dashboard

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// waitLimit bounds the wait for an element of the page.
const waitLimit = 30 * time.Second

// browser is a page of Chromium.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu     sync.Mutex
	faults []string // exceptions and messages of the console; guarded by mu
}

// open opens a page. It fails the test at its end if the page has reported a fault.
func open(t *testing.T, url string, width, height int64) *browser {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.NoSandbox, chromedp.Flag("disable-background-networking", true))
	alloc, cancelAlloc := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(func() {
		cancel()
		cancelAlloc()
	})
	if err := chromedp.Run(ctx); err != nil { // starts the browser, which ends with ctx
		t.Fatal(err)
	}
	b := &browser{t: t, ctx: ctx}
	chromedp.ListenTarget(ctx, func(event any) {
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.fault(e.ExceptionDetails.Error())
		case *log.EventEntryAdded:
			if e.Entry.Level == log.LevelError {
				b.fault(e.Entry.Text)
			}
		}
	})
	b.run(log.Enable(), chromedp.EmulateViewport(width, height), chromedp.Navigate(url))
	return b
}

func (b *browser) fault(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.faults = append(b.faults, text)
}

// expectNoFaults fails the test if the page has reported a fault.
func (b *browser) expectNoFaults() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range b.faults {
		b.t.Errorf("the page reports: %s", f)
	}
}

func (b *browser) run(actions ...chromedp.Action) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, waitLimit)
	defer cancel()
	if err := chromedp.Run(ctx, actions...); err != nil {
		b.t.Fatalf("%v; the page says: %s", err, b.text())
	}
}

// text returns the text of the page.
func (b *browser) text() string {
	var text string
	ctx, cancel := context.WithTimeout(b.ctx, waitLimit)
	defer cancel()
	_ = chromedp.Run(ctx, chromedp.Text("body", &text, chromedp.ByQuery)) // for a message
	return text
}

// expect waits until the page contains all texts.
func (b *browser) expect(texts ...string) {
	b.t.Helper()
	for _, want := range texts {
		b.run(chromedp.Poll(fmt.Sprintf("document.body.innerText.includes(%q)", want), nil, chromedp.WithPollingTimeout(waitLimit)))
	}
}

// screenshot writes a picture of the page to the folder SCREENSHOTS, if that is set.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	var picture []byte
	b.run(chromedp.FullScreenshot(&picture, 100))
	if dir := os.Getenv("SCREENSHOTS"); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}

// theme makes the page believe that the user prefers dark or light colours, and loads it again.
func (b *browser) theme(name string) {
	b.t.Helper()
	b.run(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name}}), chromedp.Reload())
}

// awaitPromise makes an evaluation wait for the value of a promise.
func awaitPromise(p *runtime.EvaluateParams) *runtime.EvaluateParams { return p.WithAwaitPromise(true) }

// expectAccessible fails the test for findings of axe-core that are serious or critical.
func (b *browser) expectAccessible(what string) {
	b.t.Helper()
	source, err := os.ReadFile("../../.tmp/node/dashboard/node_modules/axe-core/axe.min.js")
	if err != nil {
		b.t.Fatal(err)
	}
	var findings []string
	const check = `axe.run().then(r => r.violations.filter(v => ["serious", "critical"].includes(v.impact))
		.map(v => v.id + ": " + v.nodes.map(n => n.html).join(" | ")))`
	b.run(chromedp.Evaluate(string(source)+";true", nil),
		chromedp.Evaluate(check, &findings, awaitPromise))
	for _, f := range findings {
		b.t.Errorf("%s: %s", what, f)
	}
}

// expectNoOverflow fails the test if the page stays wider than its window.
func (b *browser) expectNoOverflow(what string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, waitLimit)
	defer cancel()
	fits := chromedp.Poll("document.documentElement.scrollWidth <= innerWidth", nil)
	if err := chromedp.Run(ctx, fits); err != nil {
		b.t.Errorf("%s: the page is wider than the window: %v", what, err)
	}
}
