package screen

// Styles add colours and styles to text. The zero value returns each text unchanged.
type Styles struct{ on bool }

// NewStyles decides whether text is coloured. NO_COLOR turns colours off, and CLICOLOR_FORCE (except 0) turns them
// on. Without these variables a terminal has colours, unless it is dumb or CLICOLOR is 0.
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

// Bold returns bold text.
func (s Styles) Bold(text string) string { return s.wrap("\x1b[1m", text, "\x1b[22m") }

// Dim returns dim text.
func (s Styles) Dim(text string) string { return s.wrap("\x1b[2m", text, "\x1b[22m") }

// Italic returns italic text.
func (s Styles) Italic(text string) string { return s.wrap("\x1b[3m", text, "\x1b[23m") }

// Strike returns text that is struck through.
func (s Styles) Strike(text string) string { return s.wrap("\x1b[9m", text, "\x1b[29m") }

// Red returns red text.
func (s Styles) Red(text string) string { return s.wrap("\x1b[31m", text, "\x1b[39m") }

// Green returns green text.
func (s Styles) Green(text string) string { return s.wrap("\x1b[32m", text, "\x1b[39m") }

// Yellow returns yellow text.
func (s Styles) Yellow(text string) string { return s.wrap("\x1b[33m", text, "\x1b[39m") }

// Cyan returns cyan text.
func (s Styles) Cyan(text string) string { return s.wrap("\x1b[36m", text, "\x1b[39m") }

// wrap writes a text between two escape sequences. Copies of wrap at its many uses would make the program larger.
//
//go:noinline
func (s Styles) wrap(begin, text, end string) string {
	if !s.on || text == "" {
		return text
	}
	return begin + text + end
}
