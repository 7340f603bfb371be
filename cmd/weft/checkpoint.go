package main

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft/checkpoint"
	"github.com/weft-ml/weft/internal/format/fileio"
	"github.com/weft-ml/weft/tensor"
)

func newCheckpoint() *cobra.Command {
	return group("checkpoint", "Show, compare and convert checkpoints",
		newCheckpointLs(), newCheckpointShow(), newCheckpointVerify(), newCheckpointDiff(), newCheckpointConvert())
}

// openCheckpoint opens the checkpoint with a prefix, or the latest one in a folder.
func openCheckpoint(path string) (*checkpoint.Reader, error) {
	if info, err := (fileio.Files{}).Stat(path); err == nil && info.IsDir() {
		latest, err := checkpoint.Latest(path)
		if err != nil {
			return nil, err
		}
		if latest == "" {
			return nil, fmt.Errorf("%s: the folder contains no file \"checkpoint\" that names a checkpoint", path)
		}
		path = latest
	}
	return checkpoint.Open(path)
}

// storedTensor is a tensor in the output of weft checkpoint.
type storedTensor struct {
	Name   string   `json:"name"`
	DType  string   `json:"dtype"`
	Shape  []int64  `json:"shape"`
	Slices []string `json:"slices,omitempty"`
	Values any      `json:"values,omitempty"`
}

func describe(info checkpoint.Info) storedTensor {
	t := storedTensor{Name: info.Name, DType: info.DType.Name(), Shape: append([]int64{}, info.Shape...)}
	for _, s := range info.Slices {
		t.Slices = append(t.Slices, s.String())
	}
	return t
}

func newCheckpointLs() *cobra.Command {
	cmd := &cobra.Command{
		Use: "ls PREFIX|FOLDER", Short: "List the tensors in a checkpoint",
		Long: "List the tensors in the checkpoint with a prefix, or in the latest one in a folder: their names, types, shapes, and the " +
			"slices in which they are stored.",
		Args: exactly("PREFIX"),
	}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := openCheckpoint(args[0])
		if err != nil {
			return err
		}
		defer r.Close()
		list := []storedTensor{}
		for _, info := range r.Tensors() {
			list = append(list, describe(info))
		}
		return show(cmd, *output, list, func(w io.Writer) {
			table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
			for _, t := range list {
				fmt.Fprintf(table, "%s\t%s\t%v", t.Name, t.DType, tensor.Shape(t.Shape))
				for _, s := range t.Slices {
					fmt.Fprintf(table, "\t%s", s)
				}
				fmt.Fprintln(table)
			}
			_ = table.Flush() // fails only if the output is closed, like Fprintf
		})
	}
	return cmd
}

func newCheckpointShow() *cobra.Command {
	cmd := &cobra.Command{Use: "show PREFIX|FOLDER TENSOR", Short: "Show the values of a tensor", Args: exactly("PREFIX", "TENSOR")}
	output := outputFlag(cmd)
	limit := cmd.Flags().Int("most", 1000, "maximum number of values to show as text")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := openCheckpoint(args[0])
		if err != nil {
			return err
		}
		defer r.Close()
		info, err := r.Lookup(args[1])
		if err != nil {
			return err
		}
		t, err := r.Read(args[1])
		if err != nil {
			return err
		}
		shown := describe(info)
		if *output == formJSON {
			shown.Values = jsonValue(t.Go())
		}
		return show(cmd, *output, shown, func(w io.Writer) {
			fmt.Fprintf(w, "%s %s %v\n%s\n", shown.Name, shown.DType, info.Shape, t.Summary(*limit))
		})
	}
	return cmd
}

func newCheckpointVerify() *cobra.Command {
	cmd := &cobra.Command{
		Use: "verify PREFIX|FOLDER", Short: "Read a checkpoint and verify its checksums", Args: exactly("PREFIX"),
	}
	output := outputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := openCheckpoint(args[0])
		if err != nil {
			return err
		}
		defer r.Close()
		if err := r.Verify(); err != nil {
			return err
		}
		verified := struct {
			Tensors  int   `json:"tensors"`
			Elements int64 `json:"elements"`
		}{}
		for _, info := range r.Tensors() {
			verified.Tensors++
			verified.Elements += info.Shape.NumElements()
		}
		return show(cmd, *output, verified, func(w io.Writer) {
			fmt.Fprintf(w, "ok: %d tensors, %d elements\n", verified.Tensors, verified.Elements)
		})
	}
	return cmd
}

func newCheckpointConvert() *cobra.Command {
	cmd := &cobra.Command{
		Use: "convert PREFIX|FOLDER NEW-PREFIX", Short: "Convert a checkpoint to the format V2 or V1",
		Args: exactly("PREFIX", "NEW-PREFIX"),
	}
	output := outputFlag(cmd)
	to := cmd.Flags().String("to", "v2", "format: v2 or v1")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *to != "v1" && *to != "v2" {
			return usageError{fmt.Errorf("--to %s: must be v2 or v1", *to)}
		}
		r, err := openCheckpoint(args[0])
		if err != nil {
			return err
		}
		defer r.Close()
		write := writeV2
		if *to == "v1" {
			write = writeV1
		}
		if err := write(r, args[1]); err != nil {
			return err
		}
		written := struct {
			Prefix  string `json:"prefix"`
			Format  string `json:"format"`
			Tensors int    `json:"tensors"`
		}{args[1], *to, len(r.Tensors())}
		return show(cmd, *output, written, func(w io.Writer) {
			fmt.Fprintf(w, "%s: %d tensors, format %s\n", written.Prefix, written.Tensors, written.Format)
		})
	}
	return cmd
}

// writer is implemented by the writers of both formats.
type writer interface {
	Add(name string, t *tensor.Tensor) error
	AddSlice(name string, full tensor.Shape, s checkpoint.Slice, t *tensor.Tensor) error
	Close() error
}

func writeV1(r *checkpoint.Reader, path string) error {
	if err := (fileio.Files{}).MakeDirs(fileio.Dir(path)); err != nil {
		return err
	}
	return copyTensors(r, checkpoint.CreateV1(path))
}

func writeV2(r *checkpoint.Reader, prefix string) error {
	w, err := checkpoint.Create(prefix)
	if err != nil {
		return err
	}
	defer w.Abort()
	return copyTensors(r, w)
}

// copyTensors copies all tensors, in the slices in which they are stored, and closes the writer.
func copyTensors(r *checkpoint.Reader, w writer) error {
	for _, info := range r.Tensors() {
		if info.Slices == nil {
			t, err := r.Read(info.Name)
			if err == nil {
				err = w.Add(info.Name, &t)
			}
			t.Release()
			if err != nil {
				return err
			}
			continue
		}
		for _, s := range info.Slices {
			t, err := r.ReadSlice(info.Name, s)
			if err == nil {
				err = w.AddSlice(info.Name, info.Shape, s, &t)
			}
			t.Release()
			if err != nil {
				return err
			}
		}
	}
	return w.Close()
}

// byName compares the names of two tensors.
func byName(a, b checkpoint.Info) int { return cmp.Compare(a.Name, b.Name) }
