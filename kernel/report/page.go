package report

import (
	"bufio"
	_ "embed"
	"fmt"
	"html"
)

// pageStyle is the page's style sheet.
//
//go:embed page.css
var pageStyle string

// These are the parts of a page.
type (
	pageRun struct {
		Run, Title string
		Facts      []pageFact
		Steps      []pageStep
	}
	pageFact struct{ Name, Value string }
	pageStep struct {
		At string
		// Class is the class of the list item, for its style.
		Class string
		Head  string
		// Note is a dim text after Head.
		Note string
		// Hide means that the body is folded until the reader opens it.
		Hide bool
		Body [][]pagePiece
	}
	pagePiece struct{ Class, Text string }
)

// markup writes HTML. It does not use html/template, because that package makes the linker keep all methods of the
// program.
type markup struct{ w *bufio.Writer } // Flush returns the errors

// putText writes a format with HTML tags. It escapes each text and inserts it for a %s. The %s may stand between tags
// or in a quoted attribute only.
func (m markup) putText(format string, texts ...string) {
	args := make([]any, len(texts))
	for i, t := range texts {
		args[i] = html.EscapeString(t)
	}
	fmt.Fprintf(m.w, format, args...)
}

func (m markup) putHead(version, origin, context, until string, masked bool) {
	m.putText(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="generator" content="perlica %s">
<title>What the agent did, until %s</title>
<style>
`, version, until)
	_, _ = m.w.WriteString(pageStyle) // Flush returns the error
	m.putText(`</style>
</head>
<body>
<header>
<h1>What the agent did</h1>
<p class="dim">Runs of Perlica from the event log %s, context %s. Times are UTC; those on the left count from the input.`, origin, context)
	if masked {
		m.putText(` What looks like a secret is masked.`)
	}
	m.putText(`</p>
</header>
<main>
`)
}

func (m markup) putRun(r pageRun) {
	m.putText(`<article id="run-%s">
<h2>%s</h2>
<dl>
`, r.Run, r.Title)
	for _, f := range r.Facts {
		m.putText("<dt>%s</dt><dd>%s</dd>\n", f.Name, f.Value)
	}
	m.putText("</dl>\n<ol>\n")
	for _, s := range r.Steps {
		m.putStep(s)
	}
	m.putText("</ol>\n</article>\n")
}

func (m markup) putStep(s pageStep) {
	m.putText(`<li class="%s"><time>%s</time><div>`, s.Class, s.At)
	if s.Hide {
		m.putText(`<details><summary class="dim">%s</summary>`, s.Head)
	} else {
		m.putText(`<p>%s`, s.Head)
		if s.Note != "" {
			m.putText(` <span class="dim">%s</span>`, s.Note)
		}
		m.putText(`</p>`)
	}
	for _, pieces := range s.Body {
		m.putText(`<pre>`)
		for _, piece := range pieces {
			if piece.Class != "" {
				m.putText(`<span class="%s">%s</span>`, piece.Class, piece.Text)
			} else {
				m.putText(`%s`, piece.Text)
			}
		}
		m.putText(`</pre>`)
	}
	if s.Hide {
		m.putText(`</details>`)
	}
	m.putText("</div></li>\n")
}

// putTail ends the page with the counts and with the log's state.
func (m markup) putTail(counts string, events int64, root, note string) {
	m.putText(`</main>
<footer>
<p>%s.</p>
<p>When this was written the log had %s events, and the root of its tree was <code>%s</code>. This page proves nothing by itself: <code>perlica log export</code> has the events with their hashes, <code>perlica log verify</code> checks them.</p>
`, counts, fmt.Sprint(events), root)
	if note != "" {
		m.putText("<p>Its newest checkpoint:</p>\n<pre>%s</pre>\n", note)
	}
	m.putText("</footer>\n</body>\n</html>\n")
}
