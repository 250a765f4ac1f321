package screen

import (
	"strconv"
	"strings"
	"sync"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// grammar returns the parser, which is made when it is first needed. The parser has no link definitions. They would
// vanish from the text, and other blocks could not use them.
var grammar = sync.OnceValue(func() parser.Parser {
	return parser.NewParser(
		parser.WithBlockParsers(parser.DefaultBlockParsers()...),
		parser.WithInlineParsers(append(parser.DefaultInlineParsers(), util.Prioritized(strikeParser{}, 500))...),
	)
})

type renderer struct {
	styles Styles
	width  int   // columns of the terminal, or 0 if they are unknown
	fence  fence // fence of the code block that is open
}

// renderBlock returns the lines of a block. Only a block of the kind blockRaw may end within a line.
func (r *renderer) renderBlock(b markdownBlock) string {
	switch b.kind {
	case blockRaw:
		return b.text
	case blockOpen:
		r.fence = opensFence(b.text)
		return r.styles.Dim(strings.TrimSpace(b.text)) + "\n"
	case blockShut:
		r.fence = fence{}
		return r.styles.Dim(strings.TrimSpace(b.text)) + "\n"
	case blockCode:
		return r.codeLine(b.text)
	}
	src := strings.ReplaceAll(b.text, "\r\n", "\n")
	if t, ok := parseTable(src); ok {
		if head, body, ok := r.renderTable(t); ok {
			return head + body
		}
		return strings.TrimRight(src, "\n") + "\n"
	}
	if tangled(src) {
		return strings.TrimRight(src, "\n") + "\n"
	}
	doc := grammar().Parse(text.NewReader([]byte(src)))
	var out strings.Builder
	r.renderChildren(&out, doc, []byte(src), prefix{})
	if out.Len() == 0 { // A block that renders to nothing is shown as it was written.
		return strings.TrimRight(src, "\n") + "\n"
	}
	return out.String()
}

// maxMarks is the largest number of characters with a meaning in Markdown in one block. maxDepth is the largest
// number of such characters at the beginning of a line.
const (
	maxMarks = 600
	maxDepth = 60
)

// tangled reports whether the parser would take too long for a block. The parser's time grows with the square of the
// nested or open marks. Such a block is shown as it was written.
func tangled(src string) bool {
	marks := 0
	for line := range strings.Lines(src) {
		depth := 0
		begins := true
		for _, c := range []byte(line) {
			switch c {
			case '[', ']', '!', '<', '*', '_', '`', '~':
				marks++
			}
			begins = begins && strings.IndexByte("> \t-*+.)0123456789", c) >= 0
			if begins && c != ' ' {
				depth++
			}
		}
		if depth > maxDepth && !isRule(line) {
			return true
		}
	}
	return marks > maxMarks
}

// codeLine returns a line of code without the indentation of the fence.
func (r *renderer) codeLine(line string) string {
	for i := 0; i < r.fence.indent && strings.HasPrefix(line, " "); i++ {
		line = line[1:]
	}
	line = strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")
	if lang, _, _ := strings.Cut(r.fence.lang, " "); lang == "diff" || lang == "patch" {
		switch {
		case strings.HasPrefix(line, "+"):
			line = r.styles.Green(line)
		case strings.HasPrefix(line, "-"):
			line = r.styles.Red(line)
		}
	}
	return line + "\n"
}

// prefix is the text before the lines of a block. first stands before the first line, and rest before the other
// lines.
type prefix struct{ first, rest string }

// next returns the prefix for the next block at the same place.
func (p prefix) next() prefix { return prefix{p.rest, p.rest} }

func (r *renderer) renderChildren(out *strings.Builder, n ast.Node, src []byte, p prefix) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		if c.PreviousSibling() != nil && apart(c) {
			out.WriteString(strings.TrimRight(p.rest, " ") + "\n")
		}
		r.renderNode(out, c, src, p)
		p = p.next()
	}
}

// apart reports whether a blank line must stand before a block. The first block never has one.
func apart(n ast.Node) bool {
	if n.HasBlankPreviousLines() {
		return true
	}
	switch n.Kind() {
	case ast.KindListItem, ast.KindList, ast.KindTextBlock, ast.KindFencedCodeBlock, ast.KindCodeBlock:
		return false
	}
	return n.Parent().Kind() != ast.KindListItem
}

func (r *renderer) renderNode(out *strings.Builder, n ast.Node, src []byte, p prefix) {
	switch n := n.(type) {
	case *ast.Heading:
		spans := r.inlineSpans(n, src, bold)
		if !r.styles.On() {
			spans = append([]span{{strings.Repeat("#", n.Level) + " ", 0}}, spans...)
		}
		out.WriteString(r.wrapSpans(spans, p))
	case *ast.Blockquote:
		bar := r.styles.Dim("│") + " "
		r.renderChildren(out, n, src, prefix{p.first + bar, p.rest + bar})
	case *ast.List:
		r.renderList(out, n, src, p)
	case *ast.ThematicBreak:
		out.WriteString(p.first + r.styles.Dim(strings.Repeat("─", 20)) + "\n")
	case *ast.FencedCodeBlock:
		r.codeLines(out, n, src)
	case *ast.CodeBlock:
		r.codeLines(out, n, src)
	case *ast.HTMLBlock:
		for i := range n.Lines().Len() {
			seg := n.Lines().At(i)
			out.WriteString(p.first + strings.TrimRight(string(seg.Value(src)), "\n") + "\n")
			p = p.next()
		}
		if n.HasClosure() {
			out.WriteString(p.first + strings.TrimRight(string(n.ClosureLine.Value(src)), "\n") + "\n")
		}
	default: // This is a paragraph, or the text of a list item.
		spans := r.inlineSpans(n, src, 0)
		if n.Parent().Kind() == ast.KindListItem && n.PreviousSibling() == nil {
			var box string
			if box, spans = splitTask(spans); strings.HasSuffix(p.first, bullet) && box != "" {
				p.first = strings.TrimSuffix(p.first, bullet) + box
			} else {
				p = prefix{p.first + box, p.rest + strings.Repeat(" ", TextWidth(box))}
			}
		}
		out.WriteString(r.wrapSpans(spans, p))
	}
}

// codeLines writes the lines of a code block that lies within another block. They begin at the left margin, so that
// they can be copied.
func (r *renderer) codeLines(out *strings.Builder, n ast.Node, src []byte) {
	if f, ok := n.(*ast.FencedCodeBlock); ok {
		out.WriteString(r.styles.Dim("```"+string(f.Language(src))) + "\n")
		defer func() { out.WriteString(r.styles.Dim("```") + "\n") }()
	}
	for i := range n.Lines().Len() {
		seg := n.Lines().At(i)
		out.WriteString(strings.TrimSuffix(string(seg.Value(src)), "\n") + "\n")
	}
}

// bullet stands before an item of a list without numbers. A task has its box in this place.
const bullet = "• "

func (r *renderer) renderList(out *strings.Builder, n *ast.List, src []byte, p prefix) {
	number := n.Start
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		mark := bullet
		if n.IsOrdered() {
			mark = strconv.Itoa(number) + string(n.Marker) + " "
			number++
		}
		if c.PreviousSibling() != nil && c.HasBlankPreviousLines() {
			out.WriteString(strings.TrimRight(p.rest, " ") + "\n")
		}
		if c.FirstChild() == nil {
			out.WriteString(p.first + strings.TrimRight(mark, " ") + "\n")
		} else if k := c.FirstChild().Kind(); k == ast.KindFencedCodeBlock || k == ast.KindCodeBlock {
			out.WriteString(p.first + strings.TrimRight(mark, " ") + "\n")
			r.renderChildren(out, c, src, p.next())
		} else {
			r.renderChildren(out, c, src, prefix{p.first + mark, p.rest + strings.Repeat(" ", TextWidth(mark))})
		}
		p = p.next()
	}
}

// style is the look of a part of the text, as a set of bits.
type style int

const (
	bold style = 1 << iota
	italic
	code
	faint
	struck
	hard // a line break in the text
)

type span struct {
	text  string
	style style
}

func (r *renderer) inlineSpans(n ast.Node, src []byte, st style) (spans []span) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		spans = append(spans, r.inlineSpan(c, src, st)...)
	}
	return spans
}

func (r *renderer) inlineSpan(n ast.Node, src []byte, st style) (spans []span) {
	around := func(mark string, st style, inner []span) []span {
		if r.styles.On() {
			return inner
		}
		return append(append([]span{{mark, st}}, inner...), span{mark, st})
	}
	switch n := n.(type) {
	case *ast.Text:
		spans = append(spans, span{entities.Replace(string(util.UnescapePunctuations(n.Value(src)))), st})
		if n.SoftLineBreak() || n.HardLineBreak() {
			spans = append(spans, span{"\n", hard})
		}
	case *ast.String:
		spans = append(spans, span{string(n.Value), st})
	case *ast.CodeSpan:
		var b strings.Builder
		for c := n.FirstChild(); c != nil; c = c.NextSibling() {
			if t, ok := c.(*ast.Text); ok {
				b.WriteString(strings.ReplaceAll(string(t.Value(src)), "\n", " "))
			}
		}
		spans = around("`", 0, []span{{b.String(), st | code}})
	case *ast.Emphasis:
		mark, inner := "*", italic
		if n.Level > 1 {
			mark, inner = "**", bold
		}
		spans = around(mark, st, r.inlineSpans(n, src, st|inner))
	case *strike:
		spans = around("~~", st, r.inlineSpans(n, src, st|struck))
	case *ast.Link:
		spans = linkSpans(r.inlineSpans(n, src, st), string(n.Destination))
	case *ast.Image:
		spans = linkSpans(r.inlineSpans(n, src, st), string(n.Destination))
	case *ast.AutoLink:
		spans = append(spans, span{string(n.Label(src)), st})
	case *ast.RawHTML:
		for i := range n.Segments.Len() {
			seg := n.Segments.At(i)
			spans = append(spans, span{string(seg.Value(src)), st})
		}
	default:
		spans = r.inlineSpans(n, src, st)
	}
	return spans
}

// linkSpans adds the address of a link after its text, unless the text shows the address already.
func linkSpans(spans []span, to string) []span {
	var text strings.Builder
	for _, s := range spans {
		text.WriteString(s.text)
	}
	if to == "" || text.String() == to || "mailto:"+text.String() == to {
		return spans
	}
	return append(spans, span{" (" + to + ")", faint})
}

// entities replaces the common entities of HTML. A numeric entity stays, because it could be any character.
var entities = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&amp;", "&", "&quot;", `"`, "&nbsp;", "\u00a0")
