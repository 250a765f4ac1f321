package screen

import (
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// strikeParser parses struck text, which stands between two pairs of tildes. GitHub's Markdown allows single
// tildes, too, but in an agent's text a single tilde usually means a home directory or an estimate. goldmark's own
// parser is not used, because it compiles regular expressions at each start.
type strikeParser struct{}

var kindStrike = ast.NewNodeKind("Strike")

type strike struct{ ast.BaseInline }

func (*strike) Kind() ast.NodeKind              { return kindStrike }
func (n *strike) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

func (strikeParser) Trigger() []byte { return []byte{'~'} }

func (strikeParser) Parse(_ ast.Node, block text.Reader, pc parser.Context) ast.Node {
	before := block.PrecendingCharacter()
	line, segment := block.PeekLine()
	d := parser.ScanDelimiter(line, before, 2, tildes{})
	if d == nil || d.OriginalLength != 2 || before == '~' {
		return nil
	}
	d.Segment = segment.WithStop(segment.Start + d.OriginalLength)
	block.Advance(d.OriginalLength)
	pc.PushDelimiter(d)
	return d
}

// tildes implements parser.DelimiterProcessor for strikeParser.
type tildes struct{}

func (tildes) IsDelimiter(b byte) bool                        { return b == '~' }
func (tildes) CanOpenCloser(open, end *parser.Delimiter) bool { return open.Char == end.Char }
func (tildes) OnMatch(int) ast.Node                           { return &strike{} }

// splitTask removes the box, such as [x], from the text of a task. It returns the box as it is drawn.
func splitTask(spans []span) (box string, rest []span) {
	text, n := "", 0
	for ; n < len(spans) && len(text) < len("[ ] ") && spans[n].style == 0; n++ {
		text += spans[n].text
	}
	for mark, box := range map[string]string{"[ ] ": "☐ ", "[x] ": "☑ ", "[X] ": "☑ "} {
		if strings.HasPrefix(text, mark) {
			return box, append([]span{{text[len(mark):], 0}}, spans[n:]...)
		}
	}
	return "", spans
}
