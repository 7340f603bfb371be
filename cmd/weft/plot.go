package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"
)

// plotProgram is a program of its own, because its plotting library would make a task larger.
const plotProgram = "weft-plot"

func newPlot() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plot DIR",
		Short: "Draw the curves of a training",
		Long: "Draw the values of each epoch that train.Fit has written to the folder DIR (FitOptions.Dir), as a PNG, SVG or PDF file. " +
			"The program weft-plot does it, which must be in the folder of weft or in one of PATH: " +
			"go install github.com/weft-ml/weft/cmd/weft-plot@latest",
		Args: exactly("DIR"),
	}
	out := cmd.Flags().String("out", "", "file to write: .png, .svg or .pdf; history.png in DIR if empty")
	values := cmd.Flags().String("values", "", "values to draw, such as loss,val_loss; all if empty")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		program, err := findPlot()
		if err != nil {
			return err
		}
		p := exec.CommandContext(cmd.Context(), program, "--out="+*out, "--values="+*values, args[0])
		p.Stdout, p.Stderr = cmd.OutOrStdout(), cmd.ErrOrStderr()
		err = p.Run()
		if e, ok := errors.AsType[*exec.ExitError](err); ok && e.Exited() {
			return exitError{e.ExitCode()}
		}
		return err
	}
	return cmd
}

// findPlot returns the program that draws.
func findPlot() (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), plotProgram)
		if _, err := exec.LookPath(beside); err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath(plotProgram)
	if err != nil {
		return "", fmt.Errorf("the program %s is not installed: go install github.com/weft-ml/weft/cmd/weft-plot@latest", plotProgram)
	}
	return path, nil
}
