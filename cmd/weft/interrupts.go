package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interrupts ends the context of a command at the first SIGINT or SIGTERM, and the process at the
// second.
type interrupts struct {
	received chan os.Signal
	done     chan struct{} // closed by release
	watching sync.WaitGroup
	once     sync.Once // of release
	first    int       // number of the first signal; 0 for none; written while watching
}

// interruptsKey is the key of the interrupts in the context of a command.
type interruptsKey struct{}

// watchSignals returns the context of a command. The caller must call stop when the command has
// ended.
func watchSignals() (context.Context, *interrupts) {
	i := &interrupts{received: make(chan os.Signal, 2), done: make(chan struct{})}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), interruptsKey{}, i))
	signal.Notify(i.received, os.Interrupt, syscall.SIGTERM)
	i.watching.Go(func() {
		defer cancel()
		for {
			select {
			case sig := <-i.received:
				n, _ := sig.(syscall.Signal)
				if i.first != 0 {
					os.Exit(exitSignal + int(n))
				}
				i.first = int(n)
				cancel()
			case <-i.done:
				return
			}
		}
	})
	return ctx, i
}

// stop ends the handling of signals, and returns the number of the first one, 0 if there was none.
func (i *interrupts) stop() int {
	i.release()
	i.watching.Wait()
	return i.first
}

func (i *interrupts) release() {
	i.once.Do(func() {
		signal.Stop(i.received)
		close(i.done)
	})
}

// releaseSignals leaves signals to a command that handles them itself, and returns the number of
// one that has arrived before, 0 if there was none. The context of the command ends.
func releaseSignals(ctx context.Context) int {
	if i, ok := ctx.Value(interruptsKey{}).(*interrupts); ok {
		return i.stop()
	}
	return 0
}
