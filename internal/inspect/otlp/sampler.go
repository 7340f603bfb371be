package otlp

import (
	"fmt"
	"strconv"
	"strings"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// Names of variables of the environment.
const (
	envSampler    = "OTEL_TRACES_SAMPLER"
	envSamplerArg = "OTEL_TRACES_SAMPLER_ARG"
)

// samplerFrom returns the sampler that OpenTelemetry's variables name, and whether it follows the
// parent: then no span is sampled below one that is not. get is os.Getenv.
func samplerFrom(get func(string) string) (s sdktrace.Sampler, parentBased bool, err error) {
	name := strings.ToLower(strings.TrimSpace(get(envSampler)))
	if name == "" {
		name = "parentbased_always_on"
	}
	root, parentBased := strings.CutPrefix(name, "parentbased_")
	switch root {
	case "always_on":
		s = sdktrace.AlwaysSample()
	case "always_off":
		s = sdktrace.NeverSample()
	case "traceidratio":
		ratio := 1.0
		if text := strings.TrimSpace(get(envSamplerArg)); text != "" {
			if ratio, err = strconv.ParseFloat(text, 64); err != nil || !(ratio >= 0 && ratio <= 1) {
				return nil, false, fmt.Errorf("%s=%s: it is a number from 0 to 1", envSamplerArg, text)
			}
		}
		s = sdktrace.TraceIDRatioBased(ratio)
	default:
		return nil, false, fmt.Errorf("%s=%s: Weft has always_on, always_off and traceidratio, each also with parentbased_ before it", envSampler, name)
	}
	if parentBased {
		s = sdktrace.ParentBased(s)
	}
	return s, parentBased, nil
}
