package predictable

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// These sections of a scenario are not methods.
const (
	sectionStart = "start" // runs before the first line is read
	sectionEOF   = "eof"   // runs after standard input has ended
)

// step is one step of a script. If run returns nil, the script continues. If run returns errCancelled or errGone, the
// turn was cancelled or the client has gone. Any other error becomes the response, and ends the script.
type step struct {
	name string
	run  func(ctx context.Context, r *request) error
	deaf bool // the whole script ignores session/cancel
}

// catch is the name of the directive @cancelled. A cancelled script continues there.
const catch = "cancelled"

// parse reads a script. Each line is a directive, or a text that the agent echoes. With strict, as in a scenario, a
// text is an error and # begins a comment. The parameter "first" is the number of the script's first line, for error
// messages.
func parse(text string, strict bool, first int) ([]step, error) {
	var steps []step
	var plain []string
	scripted := false
	flush := func(last bool) {
		if !last || scripted {
			plain = trimBlank(plain)
		}
		if len(plain) > 0 {
			steps = append(steps, echo(strings.Join(plain, "\n")))
		}
		plain = nil
	}
	for i, line := range strings.Split(text, "\n") {
		bare := strings.TrimSuffix(line, "\r")
		if strict && (strings.TrimSpace(bare) == "" || strings.HasPrefix(bare, "#")) {
			continue
		}
		d, rest := find(bare)
		if d == nil {
			if strict {
				return nil, fmt.Errorf("line %d: no directive: %q", first+i, bare)
			}
			if strings.HasPrefix(line, "@@") {
				line = line[1:]
			}
			plain = append(plain, line)
			continue
		}
		scripted = true
		flush(false)
		s, err := d.parseArgs(rest)
		if err != nil {
			return nil, fmt.Errorf("line %d: @%s: %w (usage: %s)", first+i, d.Name, err, d.Usage())
		}
		steps = append(steps, s)
	}
	if !strict {
		flush(true)
	}
	if slices.ContainsFunc(steps, func(s step) bool { return s.name == "only" }) {
		steps = slices.DeleteFunc(steps, func(s step) bool { return s.name == "echo" })
	}
	return steps, nil
}

func trimBlank(lines []string) []string {
	for len(lines) > 0 && strings.TrimSpace(lines[0]) == "" {
		lines = lines[1:]
	}
	for len(lines) > 0 && strings.TrimSpace(lines[len(lines)-1]) == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// find returns the directive at the beginning of a line, and the text after its name and one space. It returns nil for
// other lines.
func find(line string) (*directive, string) {
	if !strings.HasPrefix(line, "@") {
		return nil, ""
	}
	name, rest, _ := strings.Cut(line[1:], " ")
	for i := range directives {
		if directives[i].Name == name {
			return &directives[i], rest
		}
	}
	return nil, ""
}

// scenario has the scripts for methods, and for the start and the end of the input.
type scenario struct {
	sections map[string][]step

	mu   sync.Mutex
	seen map[string]int // number of calls so far, by method
}

// readScenario reads the scenario s, or the scenario in the file s if s does not look like a scenario itself.
//
// A line [NAME] begins a section: the script for the method NAME, or for start or eof. The section [NAME 2] is only for
// the second call of the method. Lines before the first section are the script for session/prompt. The lines in a
// section are directives, blank lines or comments that begin with #. An empty section is an empty script: the method
// sends its default response.
func readScenario(s string) (*scenario, error) {
	sc := &scenario{}
	if s == "" {
		return sc, nil
	}
	if !strings.ContainsRune("@[#", rune(s[0])) && !strings.Contains(s, "\n") {
		b, err := os.ReadFile(s)
		if err != nil {
			return nil, fmt.Errorf("predictable: scenario: %w", err)
		}
		s = string(b)
	}
	sc.sections, sc.seen = map[string][]step{}, map[string]int{}
	name, body, first := "session/prompt", []string(nil), 1
	end := func() error {
		if body == nil {
			return nil
		}
		if _, twice := sc.sections[name]; twice {
			return fmt.Errorf("predictable: scenario: [%s] stands twice", name)
		}
		steps, err := parse(strings.Join(body, "\n"), true, first)
		if err != nil {
			return fmt.Errorf("predictable: scenario: %w", err)
		}
		sc.sections[name] = steps
		return nil
	}
	for i, line := range strings.Split(s, "\n") {
		head := strings.TrimSpace(line)
		if !strings.HasPrefix(head, "[") || !strings.HasSuffix(head, "]") {
			if body != nil || (head != "" && head[0] != '#') {
				if body == nil {
					first = i + 1
				}
				body = append(body, line)
			}
			continue
		}
		if err := end(); err != nil {
			return nil, err
		}
		name, first, body = strings.TrimSpace(head[1:len(head)-1]), i+2, []string{}
		if !isSection(name) {
			return nil, fmt.Errorf("predictable: scenario: line %d: no section: %s", i+1, head)
		}
	}
	return sc, end()
}

// isSection reports whether name is a valid name of a section: a known method, start or eof, optionally with the number
// of a call.
func isSection(name string) bool {
	base, count, counted := strings.Cut(name, " ")
	if n, err := strconv.Atoi(count); counted && (err != nil || n < 1) {
		return false
	}
	switch base {
	case sectionStart, sectionEOF, "initialize", "authenticate", "logout":
		return true
	}
	return strings.HasPrefix(base, "_") || strings.Contains(base, "/")
}

// nextScript counts a call of the method and returns the script for this call. It returns nil if the scenario has no
// script. An empty script is not nil.
func (sc *scenario) nextScript(method string) []step {
	if sc.sections == nil {
		return nil
	}
	sc.mu.Lock()
	sc.seen[method]++
	n := sc.seen[method]
	sc.mu.Unlock()
	steps, ok := sc.sections[method+" "+strconv.Itoa(n)]
	if !ok {
		steps, ok = sc.sections[method]
	}
	if ok && steps == nil {
		return []step{}
	}
	return steps
}
