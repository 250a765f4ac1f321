package term

// Styles colour text, or leave it alone. The zero value leaves it alone.
type Styles struct{ on bool }

// NewStyles decides whether to colour: never with NO_COLOR, always with
// CLICOLOR_FORCE (other than 0), else on a terminal that is not dumb, unless
// CLICOLOR is 0.
func NewStyles(getenv func(string) string, terminal bool) Styles {
	force := getenv("CLICOLOR_FORCE")
	switch {
	case getenv("NO_COLOR") != "":
		return Styles{}
	case force != "" && force != "0":
		return Styles{on: true}
	}
	return Styles{on: terminal && getenv("TERM") != "dumb" && getenv("CLICOLOR") != "0"}
}

// On reports whether text is coloured.
func (s Styles) On() bool { return s.on }

// Bold returns text bold, where text is coloured.
func (s Styles) Bold(text string) string { return s.wrap("\x1b[1m", text, "\x1b[22m") }

// Dim returns text dim, where text is coloured.
func (s Styles) Dim(text string) string { return s.wrap("\x1b[2m", text, "\x1b[22m") }

// Italic returns text italic, where text is coloured.
func (s Styles) Italic(text string) string { return s.wrap("\x1b[3m", text, "\x1b[23m") }

// Red returns text red, where text is coloured.
func (s Styles) Red(text string) string { return s.wrap("\x1b[31m", text, "\x1b[39m") }

// Green returns text green, where text is coloured.
func (s Styles) Green(text string) string { return s.wrap("\x1b[32m", text, "\x1b[39m") }

// Yellow returns text yellow, where text is coloured.
func (s Styles) Yellow(text string) string { return s.wrap("\x1b[33m", text, "\x1b[39m") }

// Cyan returns text cyan, where text is coloured.
func (s Styles) Cyan(text string) string { return s.wrap("\x1b[36m", text, "\x1b[39m") }

func (s Styles) wrap(begin, text, end string) string {
	if !s.on || text == "" {
		return text
	}
	return begin + text + end
}
