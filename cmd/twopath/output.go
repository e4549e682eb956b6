// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"twopath/compare"
	"twopath/internal/report"
)

// output is where results go.
type output struct {
	json, html  string // files; "-" is stdout, for one of them
	quiet, wide bool
	keep        bool // save the record under a name of its own when no file was named
	saved       string
}

func addOutputFlags(c *cobra.Command) {
	c.Flags().String("json", "", "write the record to `FILE`, or - for stdout instead of the screen")
	c.Flags().String("html", "", "write a report page to `FILE`")
	c.Flags().Bool("quiet", false, "no progress; the result only")
	c.Flags().Bool("wide", false, "every trial, witness and setting")
}

// readOutput reads the flags and finds out now, not after minutes of measuring, whether the files can be written.
func readOutput(c *cobra.Command) (output, error) {
	var o output
	f := c.Flags()
	var errs [4]error
	o.json, errs[0] = f.GetString("json")
	o.html, errs[1] = f.GetString("html")
	o.quiet, errs[2] = f.GetBool("quiet")
	o.wide, errs[3] = f.GetBool("wide")
	if err := errors.Join(errs[:]...); err != nil {
		return o, err
	}
	if o.json == "-" && o.html == "-" {
		return o, fail(exitUsage, "--json - and --html -: stdout can take one of them; name a file for the other")
	}
	if o.json != "" && o.json != "-" && sameFile(o.json, o.html) {
		return o, fail(exitUsage, "--json %s and --html %s are one file, so the page would replace the record; name two", o.json, o.html)
	}
	for _, file := range []string{o.json, o.html} {
		if file != "" && file != "-" {
			if err := writable(file); err != nil {
				return o, fail(exitUsage, "cannot write %s: %w; name a file in a directory that you may write to", file, err)
			}
		}
	}
	return o, nil
}

// sameFile says whether writing to a is writing to b. Pipes and devices take from many.
func sameFile(a, b string) bool {
	info, err := os.Stat(a)
	other, err2 := os.Stat(b)
	if err == nil && err2 == nil {
		return info.Mode().IsRegular() && os.SameFile(info, other)
	}
	return filepath.Clean(a) == filepath.Clean(b)
}

// writable tries to make a file beside file, as writing it will.
func writable(file string) error {
	if info, err := os.Stat(file); err == nil && info.IsDir() {
		return errors.New("it is a directory")
	} else if err == nil && !info.Mode().IsRegular() {
		return nil // a pipe or device is written as it is
	}
	t, err := os.CreateTemp(filepath.Dir(file), ".twopath-*")
	if err != nil {
		return errors.Unwrap(err)
	}
	return errors.Join(t.Close(), os.Remove(t.Name()))
}

// write prints the documents and writes the files asked for.
func (a *app) write(o output, docs []compare.Document) error {
	if len(docs) == 0 {
		return nil
	}
	if o.json == "" && o.keep {
		o.saved = a.save(docs)
	} else if o.json != "-" {
		o.saved = o.json
	}
	if o.json != "" && o.json != "-" {
		if err := writeFile(o.json, func(w io.Writer) error { return report.JSON(w, docs) }); err != nil {
			return err
		}
	}
	if o.html != "" && o.html != "-" {
		if err := writeFile(o.html, func(w io.Writer) error { return report.HTML(w, docs) }); err != nil {
			return err
		}
	}
	switch {
	case o.json == "-":
		return report.JSON(a.stdout, docs)
	case o.html == "-":
		return report.HTML(a.stdout, docs)
	}
	return a.screen(docs, o.wide, o.saved)
}

func (a *app) screen(docs []compare.Document, wide bool, saved string) error {
	_, width := terminal(a.stdout)
	t := report.TextOptions{Wide: wide, Color: colours(a.stdout), Width: width, Saved: saved}
	return report.TextAll(a.stdout, docs, t)
}

// save writes the record beside the user, under a name with the time in it. That it cannot is a remark, not an error: the
// result is on the screen.
func (a *app) save(docs []compare.Document) string {
	base := fmt.Sprintf("twopath-%s-%s", docs[0].Test, time.Now().Format("0102-1504"))
	name := base + ".json"
	for i := 2; ; i++ {
		if _, err := os.Lstat(name); err != nil {
			break
		}
		name = fmt.Sprintf("%s-%d.json", base, i)
	}
	if err := writeFile(name, func(w io.Writer) error { return report.JSON(w, docs) }); err != nil {
		fmt.Fprintf(a.stderr, "twopath: the record was not saved: %v\n", err)
		return ""
	}
	return name
}

// writeFile writes a file as a whole or not at all. Under sudo it belongs to the user who typed the command.
func writeFile(name string, fill func(io.Writer) error) (err error) {
	var b bytes.Buffer
	if err := fill(&b); err != nil {
		return err
	}
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(name, b.Bytes(), 0o644)
	}
	t, err := os.CreateTemp(filepath.Dir(name), ".twopath-*")
	if err != nil {
		return fmt.Errorf("write %s: %w", name, err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("write %s: %w", name, err), os.Remove(t.Name()))
		}
	}()
	if _, err := t.Write(b.Bytes()); err != nil {
		return errors.Join(err, t.Close())
	}
	if err := errors.Join(t.Chmod(0o644), giveToUser(t), t.Close()); err != nil {
		return err
	}
	return os.Rename(t.Name(), name)
}

// giveToUser hands a file to the user behind sudo.
func giveToUser(f *os.File) error {
	if os.Geteuid() != 0 {
		return nil
	}
	uid, err1 := strconv.Atoi(os.Getenv("SUDO_UID"))
	gid, err2 := strconv.Atoi(os.Getenv("SUDO_GID"))
	if err1 != nil || err2 != nil {
		return nil
	}
	return f.Chown(uid, gid)
}
