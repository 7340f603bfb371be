// Command nullserver answers steps without running them. The latency of such a step is that of the
// client and the network, a lower bound for any server. bench.endtoend.latency runs it.
//
//	nullserver -to host:port
//
// It is a proxy between clients and a server, and prints its address. The first step of each
// session goes to the server. Later steps get a copy of that response, from the goroutine that
// reads the request: it reads the whole request, finds the recorded response and writes it at once.
package main

import (
	"flag"
	"fmt"
	"io"
	"net"
	"os"
)

func main() {
	to := flag.String("to", "", "address of the server, host:port")
	flag.Parse()
	fmt.Fprintln(os.Stderr, "nullserver:", run(*to, os.Stdout))
	os.Exit(1)
}

// run serves clients until an error occurs.
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
