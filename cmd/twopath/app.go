// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
)

// app is what every verb needs of the world outside.
type app struct {
	argv   []string
	stdin  io.Reader
	stdout io.Writer
	stderr io.Writer
}

// execute runs the command line and returns the exit code.
func execute(argv []string, stdin io.Reader, stdout, stderr io.Writer) int {
	a := &app{argv: argv, stdin: stdin, stdout: stdout, stderr: stderr}
	root := a.root()
	root.SetArgs(argv[1:])
	err := root.Execute()
	if err != nil {
		a.complain(err)
	}
	return exitCode(err)
}

// complain prints an error on one line, with its cure.
func (a *app) complain(err error) {
	var quiet *silent
	if errors.As(err, &quiet) {
		return
	}
	text := strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; ")
	if c := cure(err); c != "" {
		text += "; " + c
	}
	fmt.Fprintln(a.stderr, "twopath: "+text)
}

// silent is an outcome that has been told already, as part of the result.
type silent struct{ code int }

func (s *silent) Error() string { return fmt.Sprintf("exit %d", s.code) }

// told makes the exit code of an outcome that the report has told already.
func told(code int) error { return &failure{code, &silent{code}} }

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "twopath",
		Short: "The same traffic through the kernel stack and through AF_XDP, compared honestly",
		Long: `twopath runs the same traffic through the kernel network stack and through AF_XDP on the same NIC, and says what the
difference is, where every lost packet went, and whether the difference is real.

Without --nic everything happens on a veth cable between two network namespaces that twopath makes and removes.`,
		Example: `  sudo twopath demo
  sudo twopath compare udp-rx --rate line:1g
  twopath doctor`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetOut(a.stdout)
	root.SetErr(a.stderr)
	root.SetIn(a.stdin)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return a.flagError(c, err) })
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddCommand(a.demoCommand(), a.compareCommand(), a.runCommand(), a.searchCommand(), a.reproduceCommand(), a.rigCommand(), a.doctorCommand(), a.tuneCommand(), a.reportCommand(), a.diffCommand(),
		a.agentCommand(), a.schemaCommand(), a.versionCommand())
	root.SetHelpCommand(&cobra.Command{Use: "help [verb]", Short: "Help about a verb", RunE: func(c *cobra.Command, args []string) error {
		target, rest, err := root.Find(args)
		if err != nil || target == nil || len(rest) > 0 {
			return a.unknownVerb(root, strings.Join(args, " "))
		}
		return target.Help()
	}})
	root.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 0 {
			return a.unknownVerb(root, args[0])
		}
		return nil
	}
	root.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	return root
}

// terminal tells whether w is one, and its width.
func terminal(w io.Writer) (bool, int) {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return false, 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 0
	}
	return true, width
}

// colours tells whether to use them on w.
func colours(w io.Writer) bool {
	is, _ := terminal(w)
	return is && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
