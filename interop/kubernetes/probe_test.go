package kubernetes_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// probe runs the probes of a container until ctx ends. A container without a readiness probe is
// ready when it runs.
func (p *pod) probe(ctx context.Context, c *container) {
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	var lastLive, lastReady time.Time
	failures := int32(0)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		p.mu.Lock()
		runs, was, done := c.process != nil, c.ready, c.done
		p.mu.Unlock()
		if done {
			return
		}
		if !runs {
			failures = 0
			continue
		}
		if live := c.spec.LivenessProbe; live != nil && time.Since(lastLive) >= period(live) {
			lastLive = time.Now()
			if err := p.request(ctx, c, live); err == nil {
				failures = 0
			} else if failures++; failures >= live.FailureThreshold {
				p.logf("container %s is not alive: %v", c.spec.Name, err)
				p.mu.Lock()
				if c.process != nil {
					_ = c.process.Process.Signal(syscall.SIGKILL) // it may have ended
				}
				p.mu.Unlock()
				failures = 0
				continue
			}
		}
		is := true
		if r := c.spec.ReadinessProbe; r != nil {
			if time.Since(lastReady) < period(r) {
				continue
			}
			lastReady = time.Now()
			is = p.request(ctx, c, r) == nil
		}
		if is == was {
			continue
		}
		p.logf("container %s: ready %v", c.spec.Name, is)
		p.mu.Lock()
		c.ready = is && c.process != nil
		p.mu.Unlock()
		p.publish(ctx)
	}
}

func period(p *core.Probe) time.Duration { return time.Duration(p.PeriodSeconds) * time.Second }

// request sends a probe over HTTP, without a certificate and without checking the one of the pod,
// as a kubelet does.
func (p *pod) request(ctx context.Context, c *container, probe *core.Probe) error {
	port := probe.HTTPGet.Port
	if port.Type == intstr.String {
		for _, named := range c.spec.Ports {
			if named.Name == port.StrVal {
				port = intstr.FromInt32(named.ContainerPort)
			}
		}
	}
	client := http.Client{
		Timeout:   time.Duration(probe.TimeoutSeconds) * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true},
	}
	url := fmt.Sprintf("%s://%s:%d%s", strings.ToLower(string(probe.HTTPGet.Scheme)), p.box.ip, port.IntValue(), probe.HTTPGet.Path)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= 400 {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	return nil
}
