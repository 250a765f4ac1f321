package eventlog

import (
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
)

var updatePage = flag.Bool("update", false, "write the schema and the example into docs/log-format.md")

// TestFormatPage checks that docs/log-format.md shows the current schema, and an example with the current encoding.
func TestFormatPage(t *testing.T) {
	path := filepath.Join("..", "docs", "log-format.md")
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	page := between(t, string(b), "schema", "```sql\n"+store.Schema+"```\n")
	page = between(t, page, "example", example())
	if *updatePage {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if page != string(b) {
		t.Error("docs/log-format.md: run go test ./eventlog -run TestFormatPage -update")
	}
	for _, number := range []string{fmt.Sprint(store.ApplicationID), fmt.Sprintf("%#x", store.ApplicationID)} {
		if !strings.Contains(page, number) {
			t.Errorf("docs/log-format.md does not name %s", number)
		}
	}
	for _, ty := range event.Known().Where(func(r *event.Row) bool { return r.Kept }) {
		if !strings.Contains(page, "`"+string(ty)+"`") {
			t.Errorf("docs/log-format.md does not name %s, which is never pruned", ty)
		}
	}
}

// between replaces the text between the two comments for a part of the page.
func between(t *testing.T, page, part, text string) string {
	t.Helper()
	before, rest, ok := strings.Cut(page, "<!-- "+part)
	comment, rest, ok2 := strings.Cut(rest, "-->\n")
	_, after, ok3 := strings.Cut(rest, "<!-- /"+part+" -->")
	if !ok || !ok2 || !ok3 {
		t.Fatalf("the page has no part %q", part)
	}
	return before + "<!-- " + part + comment + "-->\n" + text + "<!-- /" + part + " -->" + after
}

// example returns one event, field by field, and its hashes.
func example() string {
	e := event.NewFact(event.Requested, "perlica", event.Refs{
		Session: "01a1fcc7-cfe1-786e-90ff-e2d6e672f99e", Conversation: "session-1",
		Run: "01a1fcc7-cfe1-785f-912a-be6c95bdd403", Trace: "01a1fcc7cfe1785f912abe6c95bdd403",
		Input: "01a1fcc7-cfe1-785c-b07f-c51fff63b31c",
	}, map[string]any{"llm_call_index": 1})
	e.Seq, e.Time = 8, time.Unix(0, 1795242179123456789)
	// Set the fields that the log sets.
	new(Log).fillFields(&e)
	e.ID, e.Writer, e.Context = "01a1fcc7-d00b-7c4e-8d7a-2f1b6a0c9e35", "01a1fcc7-cfd9-7a11-b3c2-55d0e1f7a846", "default"
	header := e.AppendHeader(nil)
	leaf := e.Leaf()

	var out strings.Builder
	fmt.Fprintf(&out, "The payload of an event is `%s`, %d bytes with the hash\n\n    %x\n\n", e.Payload, e.PayloadLen,
		e.PayloadSHA256)
	fmt.Fprintf(&out, "Its header has %d bytes, a field a line here:\n\n```\n", len(header))
	for rest := header; len(rest) > 0; {
		n := 4 + int(rest[3]) // no field of the example has 256 bytes or more
		field := string(rest[4:n])
		if n == len(rest) {
			field = "payload_sha256"
		}
		fmt.Fprintln(&out, strings.TrimSpace(fmt.Sprintf("%x %s  %s", rest[:4], hex.EncodeToString(rest[4:n]), field)))
		rest = rest[n:]
	}
	fmt.Fprintf(&out, "```\n\nand the leaf, hash(0x00 || header), is\n\n    %x\n", leaf[:])
	return out.String()
}
