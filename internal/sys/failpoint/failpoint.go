// Package failpoint makes chosen places of the program fail, sleep or panic. It is compiled in with
// -tags failpoints; without the tag, a place costs nothing.
//
//	if err := failpoint.Hit("fileio/write"); err != nil {
//		return err
//	}
//
// A test sets the function that every place calls, with [Set]. In a process, the environment
// variable WEFT_FAILPOINTS sets it: a list such as
//
//	fileio/write=enospc:0.01,grpch2/accept=error:0.1,master/run-step=sleep:0.05
//
// of places, with what they do (error, eio, enospc, sleep, panic) and its probability.
package failpoint
