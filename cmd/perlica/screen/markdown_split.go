package screen

import "strings"

// blockKind is the kind of a block.
type blockKind int

const (
	blockProse blockKind = iota // a block of no other kind
	blockBlank                  // lines without text
	blockOpen                   // the line that opens a fence
	blockCode                   // a line of code within a fence
	blockShut                   // the line that closes a fence
	blockRaw                    // a part of a very long line
)

// markdownBlock is a part of the text that can be rendered without the text after it.
type markdownBlock struct {
	kind blockKind
	text string
}

// maxBlock is the largest size of a block in bytes. A block that becomes larger is returned without its end.
const maxBlock = 64 << 10

// splitter cuts a text into blocks. Its zero value is ready for use.
type splitter struct {
	rest    string // the beginning of a line that has not ended
	scanned int
	block   strings.Builder
	kind    openKind
	base    int  // for a list: the indentation of its marker
	blank   bool // for a list: its last line was blank
	nested  fence
	fence   fence
	raw     bool // true within a very long line
}

type openKind int

const (
	noBlock openKind = iota
	paragraph
	item
)

// fence describes the line that opens a code block. The zero value means that no code block is open.
type fence struct {
	mark   byte
	length int
	indent int
	lang   string
}

// Feed adds text and returns the blocks that became complete.
func (s *splitter) Feed(text string) (done []markdownBlock) {
	s.rest += text
	for {
		i := strings.IndexByte(s.rest[s.scanned:], '\n')
		if i < 0 {
			break
		}
		line := s.rest[:s.scanned+i+1]
		s.rest, s.scanned = s.rest[len(line):], 0
		done = s.takeLine(done, line)
	}
	s.scanned = len(s.rest)
	if len(s.rest) > maxBlock || s.raw && s.rest != "" {
		// The line is too long and may never end, so its beginning becomes a block.
		done = append(s.endBlock(done), markdownBlock{blockRaw, s.rest})
		s.raw, s.rest, s.scanned = true, "", 0
	}
	return done
}

// Flush returns the blocks of the incomplete text. It cuts the text as if it ended here.
func (s *splitter) Flush() (done []markdownBlock) {
	if s.rest != "" {
		done = s.takeLine(done, s.rest)
	}
	done = s.endBlock(done)
	*s = splitter{}
	return done
}

// pending returns the text after the last complete block.
func (s *splitter) pending() string { return s.block.String() + s.rest }

// cutBlocks cuts text into blocks as if the text ended there. text is the pending text or a beginning of it.
func (s *splitter) cutBlocks(text string) []markdownBlock {
	t := splitter{fence: s.fence}
	return append(t.Feed(text), t.Flush()...)
}

// endBlock adds the current block to the list in the parameter "done". Blank lines at the end of a list become a
// separate block.
func (s *splitter) endBlock(done []markdownBlock) []markdownBlock {
	text := s.block.String()
	s.block.Reset()
	s.kind, s.blank, s.nested = noBlock, false, fence{}
	if text == "" {
		return done
	}
	body := text
	for {
		i := strings.LastIndexByte(strings.TrimSuffix(body, "\n"), '\n') + 1
		if i == 0 || !isBlank(body[i:]) {
			break
		}
		body = body[:i]
	}
	done = append(done, markdownBlock{blockProse, body})
	if body != text {
		done = append(done, markdownBlock{blockBlank, text[len(body):]})
	}
	return done
}

// takeLine handles one line with its line break. It adds the complete blocks to the list in the parameter "done".
func (s *splitter) takeLine(done []markdownBlock, line string) []markdownBlock {
	switch {
	case s.raw:
		s.raw = false
		return append(done, markdownBlock{blockRaw, line})
	case s.fence.mark != 0:
		if s.fence.closedBy(line) {
			s.fence = fence{}
			return append(done, markdownBlock{blockShut, line})
		}
		return append(done, markdownBlock{blockCode, line})
	case s.block.Len()+len(line) > maxBlock:
		done = s.endBlock(done)
	}
	switch {
	case s.nested.mark != 0:
		if s.nested.closedBy(line) {
			s.nested = fence{}
		}
		s.block.WriteString(line)
		return done
	case isBlank(line):
		if s.kind == item {
			s.blank = true
			s.block.WriteString(line)
			return done
		}
		return append(s.endBlock(done), markdownBlock{blockBlank, line})
	}
	if s.kind != noBlock && s.interruptsBlock(line) {
		done = s.endBlock(done)
	}
	return s.beginBlock(done, line)
}

// interruptsBlock reports whether a line, which is not blank, ends the current block.
func (s *splitter) interruptsBlock(line string) bool {
	indent := indentOf(line)
	if s.kind == item {
		_, marked := marker(line)
		return marked && indent <= s.base || indent == 0 && (s.blank || opensFence(line).mark != 0 || isHeading(line))
	}
	m, marked := marker(line)
	beginsList := marked && (m == "-" || m == "*" || m == "+" || m == "1." || m == "1)")
	return indent < 4 && (opensFence(line).mark != 0 || isHeading(line) || beginsList)
}

// beginBlock adds a line to the current block. If no block is open, it begins a block with the line.
func (s *splitter) beginBlock(done []markdownBlock, line string) []markdownBlock {
	f := opensFence(line)
	if s.kind == noBlock {
		switch _, marked := marker(line); {
		case indentOf(line) < 4 && f.mark != 0:
			s.fence = f
			return append(done, markdownBlock{blockOpen, line})
		case isHeading(line):
			return append(done, markdownBlock{blockProse, line})
		case marked:
			s.kind, s.base = item, indentOf(line)
		default:
			s.kind = paragraph
		}
	}
	if s.kind == item {
		s.blank = false
		if f.mark == 0 {
			f = opensFence(afterMarker(line))
		}
		s.nested = f
	}
	s.block.WriteString(line)
	return done
}

func isBlank(line string) bool { return strings.TrimSpace(line) == "" }

// indentOf returns the columns of space at the beginning of a line.
func indentOf(line string) int {
	n := 0
	for _, c := range []byte(line) {
		switch c {
		case ' ':
			n++
		case '\t':
			n += 4 - n%4
		default:
			return n
		}
	}
	return n
}

func isHeading(line string) bool {
	line = strings.TrimLeft(line, " ")
	text := strings.TrimLeft(line, "#")
	n := len(line) - len(text)
	return n >= 1 && n <= 6 && (isBlank(text) || text[0] == ' ' || text[0] == '\t')
}

// opensFence returns the fence that a line opens, or the zero value.
func opensFence(line string) fence {
	body := strings.TrimLeft(line, " \t")
	if body == "" || body[0] != '`' && body[0] != '~' {
		return fence{}
	}
	info := strings.TrimLeft(body, body[:1])
	f := fence{mark: body[0], length: len(body) - len(info), indent: indentOf(line), lang: strings.TrimSpace(info)}
	if f.length < 3 || f.mark == '`' && strings.Contains(info, "`") {
		return fence{}
	}
	return f
}

func (f fence) closedBy(line string) bool {
	body := strings.TrimSpace(line)
	return len(body) >= f.length && strings.Trim(body, string(f.mark)) == ""
}

// marker returns the marker of a list item at the beginning of a line.
func marker(line string) (string, bool) {
	body := strings.TrimLeft(line, " \t")
	if indentOf(line) > 8 || body == "" {
		return "", false
	}
	n := 1
	if strings.IndexByte("-*+", body[0]) < 0 {
		for n = 0; n < len(body) && body[n] >= '0' && body[n] <= '9'; n++ {
		}
		if n == 0 || n > 9 || n == len(body) || body[n] != '.' && body[n] != ')' {
			return "", false
		}
		n++
	}
	if rest := body[n:]; isBlank(rest) || rest[0] != ' ' && rest[0] != '\t' || isRule(body) {
		return "", false
	}
	return body[:n], true
}

// afterMarker returns the text after the marker of a list item.
func afterMarker(line string) string {
	m, ok := marker(line)
	if !ok {
		return line
	}
	return strings.TrimPrefix(strings.TrimLeft(line, " \t"), m)
}

// isRule reports whether a line is a thematic break, such as * * *.
func isRule(line string) bool {
	text := strings.Join(strings.Fields(line), "")
	return len(text) >= 3 && strings.IndexByte("-*_", text[0]) >= 0 && strings.Trim(text, text[:1]) == ""
}
