package screen

import (
	"strings"
	"unicode/utf8"
)

// rowsOf breaks text into rows of at most the given columns, for a [liveText]. Tabs become spaces. If a style
// continues in the next row, it is set again there.
func rowsOf(text string, columns int) (rows []string) {
	columns = max(columns, 2)
	for line := range strings.SplitSeq(strings.TrimSuffix(text, "\n"), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if strings.Contains(line, "\t") {
			line = untab(line)
		}
		if TextWidth(line) <= columns {
			rows = append(rows, line)
			continue
		}
		rows = breakLine(rows, line, columns)
	}
	if text == "" {
		return nil
	}
	return rows
}

const tabStop = 8

// untab replaces each tab by the number of spaces that a terminal shows.
func untab(line string) string {
	var b strings.Builder
	column := 0
	for i, part := range strings.Split(line, "\t") {
		if i > 0 {
			n := tabStop - column%tabStop
			b.WriteString(strings.Repeat(" ", n))
			column += n
		}
		b.WriteString(part)
		column += TextWidth(part)
	}
	return b.String()
}

func breakLine(rows []string, line string, columns int) []string {
	styles := "" // escape sequences of all styles in the line so far
	start, used := 0, 0
	carry := ""
	for i := 0; i < len(line); {
		if line[i] == '\x1b' {
			n := strings.IndexByte(line[i:], 'm') + 1
			if n == 0 {
				n = 1
			}
			styles += line[i : i+n]
			i += n
			continue
		}
		_, n := utf8.DecodeRuneInString(line[i:])
		w := TextWidth(line[i : i+n])
		if used+w > columns && used > 0 {
			end := ""
			if styles != "" {
				end = "\x1b[0m"
			}
			rows = append(rows, carry+line[start:i]+end)
			start, used, carry = i, 0, styles
		}
		i, used = i+n, used+w
	}
	return append(rows, carry+line[start:])
}
