package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/weft-ml/weft/internal/sys/buildinfo"
)

// manual is the command that documents all others.
const manual = "man"

func newMan() *cobra.Command {
	return &cobra.Command{
		Use:     manual,
		Short:   "Print the manual of all commands, for man(1)",
		Example: "  weft man | man -l -",
		Args:    noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return writeManual(cmd.OutOrStdout(), cmd.Root())
		},
	}
}

// writeManual writes the page of a command and its subcommands in the language of man(7).
func writeManual(w io.Writer, root *cobra.Command) error {
	var b strings.Builder
	about := buildinfo.Read()
	fmt.Fprintf(&b, ".TH WEFT 1 \"\" \"weft %s\" \"Weft\"\n.SH NAME\nweft \\- %s\n.SH SYNOPSIS\n.B weft\n.I COMMAND\n[\\fIFLAG\\fR]...\n", roff(about.Version), roff(root.Short))
	fmt.Fprintf(&b, ".SH DESCRIPTION\n%s\n", roff(root.Long))
	b.WriteString(".SH COMMANDS\n")
	writeCommands(&b, root)
	b.WriteString(".SH ENVIRONMENT\nEach flag can be set by a variable: \\fBWEFT_DRAIN_TIMEOUT\\fR is \\fB\\-\\-drain\\-timeout\\fR.\n" +
		".SH EXIT STATUS\n")
	for _, s := range exitStatuses {
		fmt.Fprintf(&b, ".TP\n\\fB%s\\fR\n%s\n", s.status, roff(s.meaning))
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func writeCommands(b *strings.Builder, cmd *cobra.Command) {
	for _, c := range cmd.Commands() {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			continue
		}
		text := c.Long
		if text == "" {
			text = c.Short + "."
		}
		fmt.Fprintf(b, ".SS %s\n%s\n", roff(c.UseLine()), roff(text))
		if c.Example != "" {
			fmt.Fprintf(b, ".PP\nExamples:\n.PP\n.nf\n%s\n.fi\n", roff(c.Example))
		}
		c.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if f.Hidden || f.Name == "help" {
				return
			}
			value := ""
			if f.Value.Type() != "bool" {
				value = "=\\fI" + roff(f.Value.Type()) + "\\fR"
			}
			usage := f.Usage
			if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "[]" {
				usage += " (default " + f.DefValue + ")"
			}
			fmt.Fprintf(b, ".TP\n\\fB%s\\fR%s\n%s\n", roff("--"+f.Name), value, roff(usage))
		})
		writeCommands(b, c)
	}
}

// roff returns a text with the characters escaped that have a meaning in roff.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`).Replace(text)
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			lines[i] = `\&` + line
		}
	}
	return strings.Join(lines, "\n")
}
