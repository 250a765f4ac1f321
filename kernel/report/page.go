package report

import (
	"bufio"
	_ "embed"
	"fmt"
	"html"
)

// page.css is the page's style.
//
//go:embed page.css
var pageStyle string

// What the page is made of.
type (
	pageRun struct {
		Run, Title string
		Facts      []pageFact
		Steps      []pageStep
	}
	pageFact struct{ Name, Value string }
	pageStep struct {
		At    string
		Class string // of the list's item: what it looks like
		Head  string
		Note  string // dim, behind the head
		Hide  bool   // the body is shown on demand
		Body  [][]pagePiece
	}
	pagePiece struct{ Class, Text string }
)

// markup writes HTML. It is no html/template: that looks methods up by their names, so that
// every program with it keeps all methods there are, and is a seventh larger and slower to start.
type markup struct{ w *bufio.Writer } // whose Flush tells of errors

// put writes markup with a %s for each text. A text is escaped, and may stand between tags or in
// a quoted attribute; nowhere else.
func (m markup) put(format string, texts ...string) {
	args := make([]any, len(texts))
	for i, t := range texts {
		args[i] = html.EscapeString(t)
	}
	fmt.Fprintf(m.w, format, args...)
}

func (m markup) head(version, origin, context, until string, masked bool) {
	m.put(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="generator" content="perlica %s">
<title>What the agent did, until %s</title>
<style>
`, version, until)
	_, _ = m.w.WriteString(pageStyle) // Flush tells
	m.put(`</style>
</head>
<body>
<header>
<h1>What the agent did</h1>
<p class="dim">Runs of Perlica from the event log %s, context %s. Times are UTC; those on the left count from the input.`, origin, context)
	if masked {
		m.put(` What looks like a secret is masked.`)
	}
	m.put(`</p>
</header>
<main>
`)
}

func (m markup) run(r pageRun) {
	m.put(`<article id="run-%s">
<h2>%s</h2>
<dl>
`, r.Run, r.Title)
	for _, f := range r.Facts {
		m.put("<dt>%s</dt><dd>%s</dd>\n", f.Name, f.Value)
	}
	m.put("</dl>\n<ol>\n")
	for _, s := range r.Steps {
		m.step(s)
	}
	m.put("</ol>\n</article>\n")
}

func (m markup) step(s pageStep) {
	m.put(`<li class="%s"><time>%s</time><div>`, s.Class, s.At)
	if s.Hide {
		m.put(`<details><summary class="dim">%s</summary>`, s.Head)
	} else {
		m.put(`<p>%s`, s.Head)
		if s.Note != "" {
			m.put(` <span class="dim">%s</span>`, s.Note)
		}
		m.put(`</p>`)
	}
	for _, pieces := range s.Body {
		m.put(`<pre>`)
		for _, piece := range pieces {
			if piece.Class != "" {
				m.put(`<span class="%s">%s</span>`, piece.Class, piece.Text)
			} else {
				m.put(`%s`, piece.Text)
			}
		}
		m.put(`</pre>`)
	}
	if s.Hide {
		m.put(`</details>`)
	}
	m.put("</div></li>\n")
}

// tail ends the page with what is on it, and what the log was when it was written.
func (m markup) tail(counts string, events int64, root, note string) {
	m.put(`</main>
<footer>
<p>%s.</p>
<p>When this was written the log had %s events, and the root of its tree was <code>%s</code>. This page proves nothing by itself: <code>perlica log export</code> has the events with their hashes, <code>perlica log verify</code> checks them.</p>
`, counts, fmt.Sprint(events), root)
	if note != "" {
		m.put("<p>Its newest checkpoint:</p>\n<pre>%s</pre>\n", note)
	}
	m.put("</footer>\n</body>\n</html>\n")
}
