package main

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft/tensor"
)

// form is an output format, the value of -o.
type form string

const (
	formText form = "text"
	formJSON form = "json"
)

// String implements pflag.Value.
func (f *form) String() string { return string(*f) }

// Type implements pflag.Value.
func (f *form) Type() string { return "form" }

// Set implements pflag.Value.
func (f *form) Set(text string) error {
	if *f = form(text); *f != formText && *f != formJSON {
		return errors.New("must be text or json")
	}
	return nil
}

// outputFlag adds the flag --output to a command.
func outputFlag(cmd *cobra.Command) *form {
	f := formText
	cmd.Flags().VarP(&f, "output", "o", "output format: text or json")
	return &f
}

// show writes the output of a command: v as JSON, or the text that the function text writes.
func show(cmd *cobra.Command, f form, v any, text func(io.Writer)) error {
	out := cmd.OutOrStdout()
	if f == formText {
		text(out)
		return nil
	}
	enc := json.NewEncoder(out)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// exactly requires one argument for each of the given names.
func exactly(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < len(names):
			return usageError{fmt.Errorf("%s is missing (see '%s --help')", names[len(args)], cmd.CommandPath())}
		case len(args) > len(names):
			return usageError{fmt.Errorf("unexpected argument %q (see '%s --help')", args[len(names)], cmd.CommandPath())}
		}
		return nil
	}
}

// group returns a command that only has subcommands.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return usageError{fmt.Errorf("unknown command %q (see '%s --help')", args[0], cmd.CommandPath())}
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// jsonValue converts the values of a tensor for JSON. NaN and infinity become strings ("NaN"),
// complex numbers pairs, and strings that are not UTF-8 become {"b64": "…"}, as in TensorFlow
// Serving.
func jsonValue(v any) any {
	switch v := v.(type) {
	case float32:
		return jsonFloat(float64(v), 32)
	case float64:
		return jsonFloat(v, 64)
	case tensor.Float16Elem:
		return jsonFloat(float64(v.Float32()), 32)
	case tensor.BFloat16Elem:
		return jsonFloat(float64(v.Float32()), 32)
	case complex64:
		return []any{jsonFloat(float64(real(v)), 32), jsonFloat(float64(imag(v)), 32)}
	case complex128:
		return []any{jsonFloat(real(v), 64), jsonFloat(imag(v), 64)}
	case string:
		if !utf8.ValidString(v) {
			return map[string]string{"b64": base64.StdEncoding.EncodeToString([]byte(v))}
		}
		return v
	}
	r := reflect.ValueOf(v)
	if r.Kind() == reflect.Slice {
		out := make([]any, r.Len())
		for i := range out {
			out[i] = jsonValue(r.Index(i).Interface())
		}
		return out
	}
	return v
}

func jsonFloat(v float64, bits int) any {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return tensor.FormatFloat(v, bits)
	}
	if bits == 32 {
		return float32(v)
	}
	return v
}
