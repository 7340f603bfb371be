package rpc

import "testing"

// FuzzHealthRequest decodes arbitrary bytes as a request of the health service.
func FuzzHealthRequest(f *testing.F) {
	f.Add([]byte{})
	f.Add([]byte("\x0a\x01x"))
	f.Add([]byte("\x0a\xff\xff\xff\xff\x0f"))
	f.Add([]byte("\x12\x01x\x0a\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if service, ok := healthRequest(b); len(service) > len(b) || !ok && service != "" {
			t.Errorf("got %q, %t", service, ok)
		}
	})
}
