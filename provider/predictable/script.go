package predictable

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
)

// These sections of a scenario are not methods.
const (
	sectionStart = "start" // runs before the first line is read
	sectionEOF   = "eof"   // runs after standard input has ended
)

// step is one step of a script. run returns nil to continue, errCancelled or errGone after an interruption,
// and an *agentside.Error to end the script with that error.
type step struct {
	name string
	run  func(ctx context.Context, r *request) error
	deaf bool // the script as a whole ignores session/cancel
}

// catch is the name of the step at which a cancelled script continues.
const catch = "cancelled"

// parse reads a script. A line is a directive or text to be echoed. In strict mode, as in a scenario, text is
// an error and # begins a comment. first is the number of the first line for error messages.
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

// find returns the directive at the beginning of a line and the text after its name and one space, or nil.
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

// scenario holds the scripts of methods and events.
type scenario struct {
	sections map[string][]step

	mu   sync.Mutex
	seen map[string]int // number of calls by section
}

// readScenario reads a scenario from a file, or from s itself if s looks like a scenario.
//
// A line "[NAME]" begins the script of a method, of start or of eof. "[NAME 2]" applies only to the second
// call. Lines before the first section belong to session/prompt. All other lines are directives. Blank lines
// and lines that begin with # are skipped. A method with an empty section does nothing except its default.
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

// isSection reports whether name is a method, start or eof, with or without a count, and not a typing error.
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

// nextScript returns the script for the next call of the method. It returns nil without a script. An empty script
// is not nil.
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
