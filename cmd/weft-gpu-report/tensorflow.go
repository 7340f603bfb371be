package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

//go:embed tensorflow.py
var tensorFlowProgram string

// tensorFlowTime bounds the time of TensorFlow's program. Its first start takes minutes where it
// compiles its kernels.
const tensorFlowTime = 5 * time.Minute

// tensorFlow trains the networks with TensorFlow on the same GPU, if it is installed for the
// program named python3 and sees one.
func (e *examination) tensorFlow() error {
	ctx, cancel := context.WithTimeout(context.Background(), tensorFlowTime)
	defer cancel()
	python := e.options.python
	cmd := exec.CommandContext(ctx, python, "-c", tensorFlowProgram, strconv.Itoa(e.number), strconv.Itoa(e.options.steps))
	cmd.Env = append(os.Environ(), "TF_CPP_MIN_LOG_LEVEL=3", "TF_FORCE_GPU_ALLOW_GROWTH=true")
	out, err := cmd.Output()
	if err != nil {
		why := err.Error()
		if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
			lines := strings.Split(strings.TrimSpace(string(failed.Stderr)), "\n")
			why = lines[len(lines)-1]
		}
		e.add(e.name, "TensorFlow", time.Now(), "not measured: "+why, nil)
		return nil
	}
	for line := range strings.Lines(string(out)) {
		name, value, ok := strings.Cut(strings.TrimSpace(line), "\t")
		figure, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			return fmt.Errorf("TensorFlow's program printed %q", line)
		}
		e.figure(e.name, name, figure, "µs")
	}
	return nil
}
