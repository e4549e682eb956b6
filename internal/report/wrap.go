// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// columns is the width of s on a screen. Names and units here are Latin; a
// wide rune from a foreign host name costs alignment, nothing else.
func columns(s string) int { return utf8.RuneCountInString(s) }

// oneLine replaces line breaks and everything else that does not print, so
// that a name from a record can neither break the layout nor drive a terminal.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// wrap breaks s at spaces so that each line, with its margin, fits the width.
// A word longer than a line stands alone and is not broken: it is something to
// copy, a path or a command.
func wrap(s string, width int, margin string) []string {
	room := max(width-columns(margin), 16)
	var out []string
	line, length := "", 0
	for word := range strings.FieldsSeq(s) {
		word = oneLine(word)
		n := columns(word)
		if length > 0 && length+1+n > room {
			out = append(out, margin+line)
			line, length = "", 0
		}
		if length > 0 {
			line += " "
			length++
		}
		line += word
		length += n
	}
	if length > 0 {
		out = append(out, margin+line)
	}
	return out
}

// wrapHanging keeps the spacing inside s when it fits, and else wraps it with
// every line but the first indented.
func wrapHanging(s string, width, indent int) []string {
	if columns(s) <= width {
		return []string{oneLine(s)}
	}
	lines := wrap(s, width-indent, "")
	for i := range lines {
		if i > 0 {
			lines[i] = strings.Repeat(" ", indent) + lines[i]
		}
	}
	return lines
}

// hang wraps s behind a label: the label stands in the margin of the first line.
func hang(label, s string, width, labelWidth int) []string {
	lines := wrap(s, width, strings.Repeat(" ", labelWidth))
	if len(lines) == 0 {
		return []string{label}
	}
	lines[0] = pad(label, labelWidth) + strings.TrimLeft(lines[0], " ")
	return lines
}

// hangParts is hang for remarks that should not be broken where another line
// break would do: parts are joined by sep, and a part that does not fit the
// line any more starts a new one.
func hangParts(label string, parts []string, sep string, width, labelWidth int) []string {
	margin := strings.Repeat(" ", labelWidth)
	room := max(width-labelWidth, 16)
	var out []string
	line := ""
	flush := func() {
		if line != "" {
			out = append(out, wrap(line, width, margin)...)
			line = ""
		}
	}
	for _, part := range parts {
		part = strings.Join(strings.Fields(part), " ")
		if line != "" && columns(line)+len(sep)+columns(part) > room {
			flush()
		}
		if line != "" {
			line += sep
		}
		line += part
	}
	flush()
	if len(out) == 0 {
		return []string{label}
	}
	out[0] = pad(label, labelWidth) + strings.TrimLeft(out[0], " ")
	return out
}

// breakCell splits a cell's text into lines of at most width columns, at
// spaces and before the '+' of an arm's option.
func breakCell(s string, width int) []string {
	s = oneLine(s)
	if columns(s) <= width {
		return []string{s}
	}
	var out []string
	line := ""
	for _, piece := range pieces(s) {
		if line != "" && columns(line)+columns(strings.TrimRight(piece, " ")) > width {
			out = append(out, strings.TrimRight(line, " "))
			line = "  "
		}
		line += piece
	}
	return append(out, strings.TrimRight(line, " "))
}

// pieces cuts s after each space and before each '+'.
func pieces(s string) []string {
	var out []string
	start := 0
	for i, r := range s {
		if r == '+' && i > start {
			out, start = append(out, s[start:i]), i
		}
		if r == ' ' {
			out, start = append(out, s[start:i+1]), i+1
		}
	}
	return append(out, s[start:])
}

// pad fills s up to n columns, and leaves at least one space behind it.
func pad(s string, n int) string {
	if k := columns(s); k < n {
		return s + strings.Repeat(" ", n-k)
	}
	return s + " "
}
