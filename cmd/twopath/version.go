// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"twopath/compare"
)

// version is stamped by the linker (-ldflags -X main.version=...), nothing else writes it.
var version string

// programVersion is the stamped version, or the commit the program was built from.
func programVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	revision, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision" && len(s.Value) >= 12:
			revision = s.Value[:12]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+changes"
		}
	}
	if revision == "" {
		return "devel"
	}
	return revision + dirty
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Version of the program and of its records", Example: "  twopath version", Args: exactly(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(a.stdout, "twopath %s (records %s, %s %s/%s)\n", programVersion(), compare.SchemaID, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

func (a *app) schemaCommand() *cobra.Command {
	return &cobra.Command{
		Use: "schema", Short: "The JSON Schema of the records", Example: "  twopath schema > twopath-v1.schema.json", Args: exactly(0, 0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			_, err := io.WriteString(a.stdout, compare.Schema())
			return err
		},
	}
}
