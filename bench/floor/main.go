// Command floor answers steps without running them, so that what is left of their time is the
// client's and the network's: the least that any server could take. bench.latency runs it.
//
//	floor -to host:port
//
// It stands between a client and a server, whose calls it passes on, and prints its address. The
// second and all further steps of a session get the bytes that the server answered to the first,
// from the goroutine that has read the request: it reads the whole request, looks up which call it
// is, and writes the answer at once.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
)

func main() {
	to := flag.String("to", "", "the server, host:port")
	flag.Parse()
	fmt.Fprintln(os.Stderr, "floor:", run(*to, os.Stdout))
	os.Exit(1)
}

// run answers until something fails.
func run(to string, out io.Writer) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(out, l.Addr()); err != nil {
		return err
	}
	for {
		client, err := l.Accept()
		if err != nil {
			return err
		}
		server, err := net.Dial("tcp", to)
		if err != nil {
			return err
		}
		go newRelay(client, server).run()
	}
}
