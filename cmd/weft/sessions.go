package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft"
	"github.com/weft-ml/weft/cluster"
	"github.com/weft-ml/weft/status"
)

// handleLength is the number of characters of a handle that name a session.
const handleLength = 8

func newCloseSessions() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "close TARGET [SESSION]",
		Short: "Close a session, or all sessions of a user",
		Long: "Close the session whose handle begins with SESSION, as 'weft sessions' shows it, or with --all-of all sessions of an owner, on " +
			"all masters of the cluster. Running steps fail with CANCELLED. Variables stay. With certificates, an operator may close all " +
			"sessions; a client may close its own, at the master that it names as TARGET.",
		Example: "  weft sessions close grpc://localhost:2222 300ffe8c",
	}
	var f clusterFlags
	f.add(cmd)
	owner := cmd.Flags().String("all-of", "", "owner whose sessions are closed, as 'weft sessions' shows it, such as client:alice")
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if *owner == "" {
			if err := exactly("TARGET", "SESSION")(cmd, args); err != nil {
				return err
			}
			if len(args[1]) < handleLength {
				return usageError{fmt.Errorf("the session %q is too short: at least %d characters are needed", args[1], handleLength)}
			}
			return nil
		}
		return exactly("TARGET")(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), statusTimeout)
		defer cancel()
		handle := ""
		if *owner == "" {
			handle = args[1]
		}
		closed, err := f.closeSessions(ctx, args[0], handle, *owner)
		if err != nil && len(closed) == 0 {
			return err
		}
		return errors.Join(show(cmd, *f.output, closed, func(w io.Writer) {
			for i := range closed {
				s := &closed[i]
				by := ""
				if s.Owner != "" {
					by = " of " + s.Owner
				}
				fmt.Fprintf(w, "closed session %s…%s at %s, with %d running steps\n", s.Handle, by, s.Task, len(s.Steps))
			}
		}), err)
	}
	return cmd
}

// closeSessions closes sessions at all masters that have one. Clients may not ask a cluster for its
// sessions; they close those of the target.
func (f *clusterFlags) closeSessions(ctx context.Context, target, handle, owner string) ([]openSession, error) {
	tasks, err := f.ask(ctx, target)
	if status.CodeOf(err) == status.PermissionDenied {
		closed, err := weft.CloseSessions(ctx, target, handle, owner, f.tls.targetOptions()...)
		return sessionsAt("the target", closed), err
	}
	if err != nil {
		return nil, err
	}
	masters := slices.DeleteFunc(tasks, func(t weft.TaskStatus) bool {
		return !slices.ContainsFunc(t.Sessions, func(s weft.SessionStatus) bool {
			if owner != "" {
				return s.Owner == owner
			}
			return strings.HasPrefix(handle, s.Handle)
		})
	})
	switch {
	case len(masters) == 0 && owner != "":
		return nil, status.NotFoundf("there are no sessions of %s", owner)
	case len(masters) == 0:
		return nil, status.NotFoundf("there is no session %s", handle)
	case len(masters) > 1 && owner == "":
		return nil, status.InvalidArgumentf("several masters have a session %s: give more characters of the handle", handle)
	}
	out := []openSession{}
	var errs []error
	for i := range masters {
		m := &masters[i]
		closed, err := weft.CloseSessions(ctx, "grpc://"+m.Address, handle, owner, f.tls.targetOptions()...)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", cluster.ShortName(m.Name), err))
		}
		out = append(out, sessionsAt(cluster.ShortName(m.Name), closed)...)
	}
	return out, errors.Join(errs...)
}

func sessionsAt(task string, sessions []weft.SessionStatus) []openSession {
	out := []openSession{}
	for _, s := range sessions {
		out = append(out, openSession{task, s})
	}
	return out
}
