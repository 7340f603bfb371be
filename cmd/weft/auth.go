package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/weft-ml/weft/internal/trust"
)

func newAuth() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "auth",
		Short: "Show what the holders of certificates may do",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	markdown := false
	table := &cobra.Command{
		Use:   "table",
		Short: "Print the methods of a task and which roles may call them",
		Args:  noArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return trust.WriteTable(cmd.OutOrStdout(), markdown) },
	}
	table.Flags().BoolVar(&markdown, "markdown", false, "print a table in Markdown")
	cmd.AddCommand(table, &cobra.Command{
		Use:     "can ROLE METHOD",
		Short:   "Say whether a role may call a method; the exit status is 0 if it may",
		Example: "  weft auth can observer GetStatus",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{fmt.Errorf("want a role and a method")}
			}
			return can(cmd, args[0], args[1])
		},
	})
	return cmd
}

func can(cmd *cobra.Command, roleName, method string) error {
	role, ok := trust.ParseRole(roleName)
	if !ok {
		return usageError{fmt.Errorf("%q is no role: client, task, operator, observer or anonymous", roleName)}
	}
	rows := trust.Find(method)
	if len(rows) == 0 {
		return usageError{fmt.Errorf("there is no method %q (see 'weft auth table')", method)}
	}
	var no []string
	for _, row := range rows {
		rule := row.Rules[role]
		text := rule.Meaning()
		if rule == trust.OpenOnly {
			text = "only with " + row.Open
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: %s: %s\n", row.Name(), rule, text)
		if rule == trust.Never {
			no = append(no, row.Name())
		}
	}
	if len(no) > 0 {
		return fmt.Errorf("the role %s may not call %s", role, strings.Join(no, ", "))
	}
	return nil
}
