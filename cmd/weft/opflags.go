package main

import "github.com/spf13/pflag"

// opFlags are the flags of weft server about the operations that it runs.
type opFlags struct {
	set    string
	denied []string
}

func (f *opFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.set, "ops", "all", "operations that the task runs: all, training (without those that print or debug) or serving (without those that write files, either); "+
		"'weft ops' shows the class of each")
	flags.StringArrayVar(&f.denied, "deny-op", nil, "operation that the task does not run, by `NAME`; may be repeated")
}
