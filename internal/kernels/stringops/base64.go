package stringops

import (
	"encoding/base64"
	"strings"

	"github.com/weft-ml/weft/kernel"
	"github.com/weft-ml/weft/opdef"
	"github.com/weft-ml/weft/status"
)

func init() {
	kernel.RegisterNew(opdef.Def{
		Name: "EncodeBase64", Doc: "Encodes strings in web-safe Base64.",
		In:    []string{"input: string"},
		Out:   []string{"output: string"},
		Attrs: []string{"pad: bool = false"},
		Shape: opdef.SameShape,
	}, func(c *kernel.Construction) (kernel.Kernel, error) {
		encoding := base64.RawURLEncoding
		if c.Attrs.Bool("pad") {
			encoding = base64.URLEncoding
		}
		return kernel.Func(func(ctx *kernel.Context) error {
			return eachString(ctx, func(s string) (string, error) { return encoding.EncodeToString([]byte(s)), nil })
		}), nil
	})
	kernel.RegisterFunc(opdef.Def{
		Name: "DecodeBase64", Doc: "Decodes strings in web-safe Base64, with or without padding.",
		In:    []string{"input: string"},
		Out:   []string{"output: string"},
		Shape: opdef.SameShape,
	}, func(ctx *kernel.Context) error { return eachString(ctx, decodeBase64) })
}

func decodeBase64(s string) (string, error) {
	digits := s
	switch len(s) % 4 {
	case 0:
		var padded bool
		if digits, padded = strings.CutSuffix(s, "="); padded {
			digits = strings.TrimSuffix(digits, "=")
		}
	case 1:
		if _, err := base64.RawURLEncoding.DecodeString(s[:len(s)-1]); err != nil {
			return "", status.InvalidArgumentf("Invalid character found in base64.")
		}
		return "", status.InvalidArgumentf("Base64 string length cannot be 1 modulo 4.")
	}
	b, err := base64.RawURLEncoding.DecodeString(digits)
	if err != nil || strings.ContainsAny(s, "\r\n") {
		return "", status.InvalidArgumentf("Invalid character found in base64.")
	}
	return string(b), nil
}
