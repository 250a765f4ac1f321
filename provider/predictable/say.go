package predictable

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
)

// block is a content block of a prompt, with the members that this package uses.
type block struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	URI      string `json:"uri"`
	MimeType string `json:"mimeType"`
	Data     string `json:"data"`
	Resource struct {
		URI  string `json:"uri"`
		Text string `json:"text"`
		Blob string `json:"blob"`
	} `json:"resource"`
}

// promptText joins the text blocks of a prompt into one script. It ignores embedded content, because an attached file
// must not become a script.
func promptText(blocks []block) string {
	var parts []string
	for _, b := range blocks {
		if b.Type == "text" {
			parts = append(parts, b.Text)
		}
	}
	return strings.Join(parts, "\n")
}

// unanswered returns the blocks of a prompt without Perlica's transcript of earlier turns, because the agent must not
// obey lines of earlier turns again.
func unanswered(blocks []block) []block {
	for i, b := range blocks[:max(len(blocks)-1, 0)] {
		if b.Type == "text" && strings.HasPrefix(b.Text, "This conversation has earlier turns.") &&
			strings.HasSuffix(b.Text, "The message to answer now follows.\n") {
			return append(slices.Clone(blocks[:i]), blocks[i+1:]...)
		}
	}
	return blocks
}

// attached returns the steps that describe each block of a prompt that is not text, in one line each.
func attached(blocks []block) []step {
	var lines strings.Builder
	for _, b := range blocks {
		switch b.Type {
		case "text":
		case "resource":
			fmt.Fprintf(&lines, "Attached: resource %s, %d bytes\n", b.Resource.URI, len(b.Resource.Text)+len(b.Resource.Blob))
		case "resource_link":
			fmt.Fprintf(&lines, "Attached: resource_link %s\n", b.URI)
		default:
			fmt.Fprintf(&lines, "Attached: %s %s, %d bytes\n", b.Type, b.MimeType, len(b.Data))
		}
	}
	if lines.Len() == 0 {
		return nil
	}
	return []step{{name: "attached", run: func(ctx context.Context, r *request) error {
		if said := r.said.String(); said != "" && !strings.HasSuffix(said, "\n") {
			return r.sayChunk(ctx, "\n"+lines.String())
		}
		return r.sayChunk(ctx, lines.String())
	}}}
}

// isEcho reports whether a script has no directives, only text that it echoes.
func isEcho(steps []step) bool {
	for _, s := range steps {
		if s.name != "echo" && s.name != "attached" {
			return false
		}
	}
	return len(steps) > 0
}

// echo returns a step that sends "You said: " and the text, with one message chunk for each line.
func echo(text string) step {
	chunks := strings.SplitAfter("You said: "+text, "\n")
	return step{name: "echo", run: func(ctx context.Context, r *request) error {
		for _, c := range chunks {
			if c == "" {
				continue
			}
			if err := r.sayChunk(ctx, c); err != nil {
				return err
			}
		}
		return nil
	}}
}

func show(a *args) action {
	what, name := a.oneOf("WHAT", "params", "session", "history", "pid", "env"), ""
	if what == "env" {
		name = a.word("NAME")
	}
	return func(ctx context.Context, r *request) error {
		switch what {
		case "params":
			return r.sayChunk(ctx, string(r.params)+"\n")
		case "pid":
			return r.sayChunk(ctx, "pid: "+strconv.Itoa(os.Getpid())+"\n")
		case "env":
			value, ok := os.LookupEnv(name)
			if !ok {
				value = "(unset)"
			}
			return r.sayChunk(ctx, "env "+name+": "+value+"\n")
		}
		return r.sayChunk(ctx, r.agent.describeSession(r.sess, what))
	}
}

// describeSession returns a text about a session: its state, or its earlier turns if the parameter "what" is "history".
func (a *agent) describeSession(s *session, what string) string {
	if s == nil {
		return what + ": none\n"
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if what == "session" {
		return fmt.Sprintf("session: %s, mode %s, in %s\n", s.id, s.mode, s.cwd)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "history: %d turns\n", len(s.turns))
	for i, t := range s.turns {
		fmt.Fprintf(&b, "%d: %s\n", i+1, strings.ReplaceAll(t.User, "\n", " "))
	}
	return b.String()
}

// numbered is the smallest size of a chunk of @stream that contains its number, in bytes: nine digits, a space, one
// character and a newline.
const numbered = 12

func stream(a *args) action {
	count, size := a.number("COUNT", 0, 999_999_999), a.number("SIZE", 1, math.MaxInt32)
	every := a.duration("every", a.key("every", "0s"))
	kind := messageChunk
	switch a.key("kind", "message") {
	case "message":
	case "thought":
		kind = thoughtChunk
	default:
		a.setError(fmt.Errorf("kind= is message or thought"))
	}
	return func(ctx context.Context, r *request) error {
		wait := max(every, r.delay)
		line, number := streamLine(r, kind, size)
		// A batch fits into the buffer of a pipe (64 KiB). A fast reader therefore never gets half a line and waits
		// for the other half.
		batch := make([]byte, 0, max(32<<10, len(line)))
		for i := range count {
			if number > 0 {
				digits(line[number:number+9], i)
			}
			batch = append(batch, line...)
			if i < count-1 && wait == 0 && len(batch)+len(line) <= cap(batch) {
				continue
			}
			if err := pause(ctx, wait); err != nil {
				return err
			}
			if err := r.agent.out.writeRaw(batch); err != nil {
				return err
			}
			batch = batch[:0]
		}
		return nil
	}
}

// streamLine returns the line for one update of @stream, and the index of the number in the line. The index is 0 if the
// chunk is too short for a number.
func streamLine(r *request, kind string, size int) ([]byte, int) {
	text := strings.Repeat("x", size)
	if size >= numbered {
		text = "000000000 " + text[:size-11] + "\n"
	}
	line := append(updateLine(r.sid, chunk(kind, text)), r.agent.out.ending()...)
	if size < numbered {
		return line, 0
	}
	return line, strings.Index(string(line), `"text":"`) + len(`"text":"`)
}

func digits(b []byte, n int) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = byte('0' + n%10)
		n /= 10
	}
}

func plan(a *args) action {
	var entries []string
	for _, e := range a.remainingWords("ENTRY") {
		status, content, ok := strings.Cut(e, ":")
		switch {
		case ok && (status == "pending" || status == "in_progress" || status == "completed"):
		default:
			status, content = "pending", e
		}
		o := &object{}
		entries = append(entries, string(o.addString("content", content).addString("priority", "medium").addString("status",
			status).endObject()))
	}
	return sendUpdate("plan", func(o *object) { o.addRaw("entries", "["+strings.Join(entries, ",")+"]") })
}

func usage(a *args) action {
	used, size := a.number("USED", 0, math.MaxInt32), a.number("SIZE", 0, math.MaxInt32)
	cost := a.jsonKey("cost")
	if cost != "" {
		cost = `{"amount":` + cost + `,"currency":"USD"}`
	}
	return sendUpdate("usage_update", func(o *object) {
		o.addRaw("used", strconv.Itoa(used)).addRaw("size", strconv.Itoa(size)).addRaw("cost", cost)
	})
}

func title(a *args) action {
	return sendUpdate("session_info_update", func(o *object) { o.addString("title", a.text) })
}

func mode(a *args) action {
	id := a.word("ID")
	send := sendUpdate("current_mode_update", func(o *object) { o.addString("currentModeId", id) })
	return func(ctx context.Context, r *request) error {
		if r.sess != nil {
			r.agent.mu.Lock()
			r.sess.mode = id
			r.agent.mu.Unlock()
		}
		return send(ctx, r)
	}
}

func commands(a *args) action {
	var list []string
	for _, name := range a.remainingWords("NAME") {
		o := &object{}
		list = append(list, string(o.addString("name", name).addString("description", "Does nothing.").endObject()))
	}
	return sendUpdate("available_commands_update", func(o *object) {
		o.addRaw("availableCommands", "["+strings.Join(list, ",")+"]")
	})
}

// sendUpdate returns a step that sends an update of this kind. The fields are the same for every request, so sendUpdate
// builds them once.
func sendUpdate(kind string, fields func(o *object)) action {
	o := (&object{}).addString("sessionUpdate", kind)
	fields(o)
	u := o.endObject()
	return func(ctx context.Context, r *request) error { return r.updateSession(ctx, u) }
}

func update(a *args) action {
	u, sid := a.nextWord("JSON").json(), a.key("session", "")
	return func(ctx context.Context, r *request) error {
		to := sid
		if to == "" {
			to = r.sid
		}
		return r.updateOther(ctx, to, json.RawMessage(r.fillIDs(u)))
	}
}
