//go:build linux

package main

import (
	"context"
	"errors"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
)

// logReaders are the commands that show the log. TestReadersOfAForgedLog runs each of them with these arguments. RUN
// and QUESTION stand for the ids of the forged run and of the forged question.
var logReaders = map[string][]string{
	"perlica log show": {"log show RUN", "log show work", "log show 3", "log show 3 --json",
		"log show RUN --json", "log show QUESTION", "log show --type llm.*"},
	"perlica log tail":   {"log tail -n 200", "log tail -n 200 --json", "log tail -n 200 --facts"},
	"perlica log runs":   {"log runs", "log runs --json"},
	"perlica log search": {"log search euro", "log search euro --json"},
	"perlica log stats": {"log stats", "log stats --json", "log stats --by person", "log stats --by session",
		"log stats --by project"},
	"perlica log verify": {"log verify", "log verify --json"},
	"perlica log prove":  {"log prove 3", "log prove QUESTION"},
	"perlica log export": {"log export", "log export --format html", "log export --format otel",
		"log export --format cloudevents", "log export --run RUN --format html"},
	"perlica report":       {"report -o -", "report -o - --session work"},
	"perlica session list": {"session list", "session list --all --json"},
	"perlica session show": {"session show work", "session show work --json"},
	"perlica session export": {"session export work", "session export work --format html",
		"session export work --replay -"},
	"perlica agent replay":          {"agent replay LOG --run RUN", "agent replay LOG --session work"},
	"perlica pending show":          {"pending show QUESTION", "pending show QUESTION --json"},
	"perlica policy approvals list": {"policy approvals list", "policy approvals list --json"},
	"perlica policy try":            {"policy try", "policy try --json", "policy try --all"},
	"perlica policy suggest":        {"policy suggest", "policy suggest --json", "policy suggest --all"},
	"perlica service contacts":      {"service contacts", "service contacts --json"},
	"perlica doctor":                {"doctor"},
	"perlica changes":               {"changes", "changes --json", "changes --diff"},
	"perlica blame":                 {"blame .perlica_config", "blame .perlica_config --json"},
}

// noLogReaders are reading commands that show no payload of the project's log, each with its reason.
var noLogReaders = map[string]string{
	"perlica budget":   "shows sums of the view",
	"perlica log list": "lists files", "perlica log key show": "shows keys", "perlica log trust": "shows times and keys",
	"perlica watch":        "ends by a signal alone: TestFollowersOfAForgedLog",
	"perlica pending list": "lists questions of living runs", "perlica session current": "shows ids of the view",
	"perlica policy check": "shows rules", "perlica config show": "shows settings", "perlica config path": "shows paths",
	"perlica config check":  "shows settings",
	"perlica provider list": "lists agents", "perlica provider show": "shows an agent",
	"perlica sandbox check": "shows the sandbox", "perlica sandbox try": "tries the sandbox",
	"perlica schedule list": "shows times", "perlica schedule next": "shows settings",
	"perlica sandbox enter":     "becomes another program",
	"perlica provider sessions": "shows the agent's list",
	"perlica provider test":     "probes an agent", "perlica agent predictable": "is an agent",
	"perlica agent model":    "is an agent",
	"perlica service status": "shows processes", "perlica service projects": "shows folders",
	"perlica service channel list": "lists channels", "perlica service channel test": "probes a channel",
	"perlica service check": "asks a platform",
	"perlica web devices":   "shows the user's own log by the same function, Reading",
	"perlica flow check":    "shows a file", "perlica flow list": "shows flow runs by the same function, Reading",
	"perlica flow show":    "shows a flow run by the same function, Reading",
	"perlica hook deliver": "starts programs", "perlica hook list": "shows settings and failed starts",
	"perlica notify list": "shows settings and results of deliveries",
	"perlica team inputs": "shows the hub", "perlica team status": "shows the hub",
	"perlica team workers": "shows the hub", "perlica team members": "shows the hub",
	"perlica team pending list": "shows the hub", "perlica team log fetch": "checks each event of the copy",
	"perlica team fetch":   "checks each event of the copy",
	"perlica service logs": "shows the debug trail", "perlica version": "shows no log", "perlica help": "shows no log",
}

// TestEveryReaderIsInTheTable checks that each reading command is in logReaders or in noLogReaders.
func TestEveryReaderIsInTheTable(t *testing.T) {
	everyCommand(t, func(cmd *cobra.Command, words []string) {
		path := cmd.CommandPath()
		if cmd.RunE == nil && cmd.Run == nil || frame.AccessOf(cmd) != frame.ReadOnly ||
			strings.HasPrefix(path, "perlica completion") {
			return
		}
		if cmd.HasSubCommands() {
			return // The default subcommand of this command is in the table.
		}
		if logReaders[path] == nil && noLogReaders[path] == "" {
			t.Errorf("'%s' reads: put it into logReaders, or say in noLogReaders why it shows no payload", path)
		}
	})
}

// says runs a command and returns its standard output with its standard error, and its exit code.
func (w *world) says(command string) (string, int) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "perlica", strings.Fields(command)...)
	cmd.Dir, cmd.Env = w.project, w.env
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		w.t.Fatal(err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// recordedText is a text in the log of forgedLog. The forger replaces it by forgedText.
const recordedText, forgedText = "100 euro", "900 euro"

// forgedLog makes the log of recordedLog, forges its payloads and deletes its views. change is the SQL by which the
// forger changes each row.
func (w *world) forgedLog(change string) (run, question string) {
	w.t.Helper()
	run, question = w.recordedLog()
	w.unview()
	w.forge(`UPDATE events SET ` + change + ` WHERE instr(payload, '` + recordedText + `')`)
	return run, question
}

// forge changes the project's log by SQL. It drops the triggers before and restores them afterwards.
func (w *world) forge(change string) {
	w.t.Helper()
	path := logFile(w.project)
	w.sql(path, `DROP TRIGGER events_lose_nothing_but_payloads; DROP TRIGGER events_are_not_deleted; `+change)
	for _, sql := range store.Statements() {
		if strings.Contains(sql, "TRIGGER events_") {
			w.sql(path, sql)
		}
	}
}

// recordedLog makes a log with a session, a run, a question, an approval and a contact.
func (w *world) recordedLog() (run, question string) {
	w.t.Helper()
	must := func(out string, code int) {
		w.t.Helper()
		if code != 0 && code != 5 {
			w.t.Fatalf("exit code %d: %s", code, out)
		}
	}
	must(w.says("session new work"))
	for _, text := range []string{"pay " + recordedText, `@ask execute "pay ` + recordedText + `" command="pay"`} {
		cmd := exec.Command("perlica", "run", "-q", "-s", "work", text)
		cmd.Dir, cmd.Env = w.project, w.env
		out, _ := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); code != 0 && code != 5 {
			w.t.Fatalf("exit code %d: %s", code, out)
		}
	}
	path := logFile(w.project)
	log, err := eventlog.Open(w.t.Context(), path, eventlog.Options{Context: "default"})
	if err != nil {
		w.t.Fatal(err)
	}
	_, err = log.Append(w.t.Context(),
		event.NewFact(event.ApprovalRemembered, "user", event.Refs{},
			map[string]any{"id": "a", "effect": "allow", "kind": recordedText, "by": "x"}),
		event.NewFact(event.ContactPaired, "user", event.Refs{},
			map[string]any{"channel": "c", "contact": "d", "name": recordedText, "rights": []string{"ask"}}))
	for e, eerr := range log.Events(w.t.Context(), event.Query{}) {
		err = errors.Join(err, eerr)
		if e.Type == event.InteractionRequested {
			run, question = string(e.Run), string(e.Interaction)
		}
	}
	if err := errors.Join(err, log.Close()); err != nil || question == "" {
		w.t.Fatal(err)
	}
	return run, question
}

// unview deletes the views of the log, so that Perlica builds them again. The views are databases that Perlica
// derives from the log.
func (w *world) unview() {
	w.t.Helper()
	dir := filepath.Dir(logFile(w.project))
	for _, view := range []string{"sessions.db", "approvals.db", "search.db", "changes.db",
		"../../service/service_bridge.db"} {
		for _, suffix := range []string{"", "-wal", "-shm"} {
			if err := os.Remove(filepath.Join(dir, view+suffix)); err != nil && !errors.Is(err, os.ErrNotExist) {
				w.t.Fatal(err)
			}
		}
	}
}

// TestReadersOfAForgedLog checks that no command shows a forged payload or header as if it were recorded. The
// command must report the damage and end with exit code 1.
func TestReadersOfAForgedLog(t *testing.T) {
	if testing.Short() {
		t.Skip("starts hundreds of processes, each with one goroutine of interest")
	}
	damaged := regexp.MustCompile(`(?i)damage|does not have its recorded hash`)
	for name, change := range map[string]string{
		"payload": `payload = CAST(replace(CAST(payload AS TEXT), '` + recordedText + `', '` + forgedText + `') AS BLOB)`,
		// The forger changes the payload and its recorded length, so that both agree. The event's leaf of the tree no
		// longer fits.
		"payload and length": `payload = CAST(replace(CAST(payload AS TEXT), '` + recordedText + `', '` + forgedText +
			`!') AS BLOB), payload_len = payload_len + 1`,
		"emptied": `payload = x''`,
		"removed": `payload = NULL`,
		"header":  `actor = '` + forgedText + `'`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run, question := w.forgedLog(change)
			names := strings.NewReplacer("RUN", run, "QUESTION", question, "LOG", logFile(w.project))
			for _, commands := range logReaders {
				for _, command := range commands {
					w.unview()
					out, code := w.says(names.Replace(command))
					if code != 1 || !damaged.MatchString(out) {
						t.Errorf("%s: exit code %d: %s", command, code, out)
					}
					if i := strings.Index(out, forgedText); i >= 0 && name != "header" {
						t.Errorf("%s shows what was forged: …%s", command, out[max(0, i-100):i+len(forgedText)])
					}
				}
			}
			// A run must not send the forged history of the session in a prompt.
			if out, code := w.says("run -s work hello"); code == 0 || !damaged.MatchString(out) {
				t.Errorf("run: exit code %d: %s", code, out)
			}
		})
	}
}

// forgedColumn is the text that the forger writes into a column of the log.
const forgedColumn = "f0f0f0f0-1111-7222-8333-f0f0f0f0f0f0"

// forgeries returns changes of the log, each as SQL by its name. Each change makes a query miss an event, or return
// an event that does not belong to its result.
func forgeries() map[string]string {
	const first, second = `(SELECT min(seq) FROM events WHERE type = 'llm.responded')`,
		`(SELECT min(seq) FROM events WHERE type = 'interaction.requested')`
	set := func(column, value, where string) string {
		return `UPDATE events SET ` + column + ` = ` + value + ` WHERE seq = ` + where
	}
	list := map[string]string{
		"type of an outcome": set("type", "'x.forged'", first),
		"type of an input": set("type", "'x.forged'",
			`(SELECT min(seq) FROM events WHERE type = 'inbound.message.received')`),
		"type of a question": set("type", "'x.forged'", second),
		"type of an end": set("type", "'acp.response.sent'",
			`(SELECT min(seq) FROM events WHERE type = 'llm.single_call.enforced')`),
		"class":       set("class", "'frame'", first),
		"time":        set("ts", "1", first),
		"interaction": set("interaction_id", "'"+forgedColumn+"'", second),
		"input": set("input_id", "'"+forgedColumn+"'",
			`(SELECT min(seq) FROM events WHERE type = 'llm.requested')`),
		"leaf":                set("leaf", "zeroblob(32)", first),
		"order":               `UPDATE events SET seq = 1000000 WHERE seq = 5; UPDATE events SET seq = 5 WHERE seq = 6; UPDATE events SET seq = 6 WHERE seq = 1000000`,
		"deleted frame":       `DELETE FROM events WHERE seq = (SELECT min(seq) FROM events WHERE class = 'frame')`,
		"deleted outcome":     `DELETE FROM events WHERE seq = ` + first,
		"deleted first":       `DELETE FROM events WHERE seq = 1`,
		"deleted end of runs": `DELETE FROM events WHERE seq >= (SELECT max(seq) FROM events WHERE type = 'llm.single_call.enforced')`,
	}
	for _, column := range []string{"event_id", "actor", "writer", "context_id", "session_id", "conversation_id", "run_id",
		"trace_id"} {
		list[column] = set(column, "'"+forgedColumn+"'", first)
	}
	return list
}

var allReaders = flag.Bool("all-readers", false, "run each reading command after each forgery, not a fifth of them")

// TestReadersOfForgedColumns checks that each command fails after a column was forged, or after an event was moved
// or deleted. No command may show the forged text. Both must hold with the views of the genuine log and without
// views.
func TestReadersOfForgedColumns(t *testing.T) {
	if testing.Short() {
		t.Skip("starts hundreds of processes, each with one goroutine of interest")
	}
	unused := map[string]bool{"type of a question": true, "type of an end": true, "order": true, "input": true,
		"interaction": true, "deleted frame": true}
	damaged := regexp.MustCompile(`(?i)damage|does not have its recorded hash|is missing|older than it was seen`)
	changes := forgeries()
	for i, name := range slices.Sorted(maps.Keys(changes)) {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			run, question := w.recordedLog()
			w.says("session list")
			w.forge(changes[name])
			names := strings.NewReplacer("RUN", run, "QUESTION", question, "LOG", logFile(w.project))
			hold := func(command string) {
				out, code := w.says(names.Replace(command))
				if code != 1 || !damaged.MatchString(out) {
					t.Errorf("%s: exit code %d: %s", command, code, out)
				}
				if i := strings.Index(out, forgedColumn[:8]); i >= 0 {
					t.Errorf("%s shows the forged text: …%s", command, out[max(0, i-100):min(len(out), i+100)])
				}
			}
			hold("session list")
			// The view of the sessions was built from the genuine events. A run compares the events that it uses with
			// the view.
			if out, code := w.says("run -q -s work hello"); !unused[name] && (code == 0 || !damaged.MatchString(out)) {
				t.Errorf("run with the views: exit code %d: %s", code, out)
			}
			w.unview()
			for j, command := range slices.Sorted(slices.Values(slices.Concat(slices.Collect(maps.Values(logReaders))...))) {
				if *allReaders || (i+j)%5 == 0 {
					hold(command)
				}
			}
			w.unview()
			if out, code := w.says("run -q -s work hello"); code == 0 || !damaged.MatchString(out) {
				t.Errorf("run: exit code %d: %s", code, out)
			}
		})
	}
}

// TestFollowersOfAForgedLog checks that a command which follows the log shows damage at its place. When a person
// ends the command, it must still end with exit code 1.
func TestFollowersOfAForgedLog(t *testing.T) {
	w := newWorld(t)
	w.forgedLog(`payload = CAST(replace(CAST(payload AS TEXT), '` + recordedText + `', '` + forgedText + `') AS BLOB)`)
	for _, command := range []string{"watch work -n 5", "log tail -f -n 200", "log tail -f -n 200 --json"} {
		w.unview()
		j := w.start(strings.Fields(command)...)
		w.eventually("damage is shown", func() error {
			if out := j.stdout.String() + j.stderr.String(); !strings.Contains(strings.ToLower(out), "damaged") ||
				!strings.Contains(out, "permission: reject-once") {
				return errors.New(out)
			}
			return nil
		})
		j.signal(syscall.SIGINT)
		j.exits(1)
		if out := j.stdout.String() + j.stderr.String(); strings.Contains(out, forgedText) ||
			strings.Contains(out, "nothing was said") {
			t.Errorf("%s: %s", command, out)
		}
	}
}

// TestChatOfAForgedLog checks that the slash command /log does not show text that was forged during the chat.
func TestChatOfAForgedLog(t *testing.T) {
	w := newWorld(t)
	s := w.chat()
	s.send("pay "+recordedText, "You said: pay "+recordedText)
	w.sql(logFile(w.project),
		`PRAGMA busy_timeout = 10000; DROP TRIGGER events_lose_nothing_but_payloads; UPDATE events SET
		payload = CAST(replace(CAST(payload AS TEXT), '`+recordedText+`', '`+forgedText+`') AS BLOB)`)
	for _, command := range []string{"/log", "/log 100", "/log show last", "/usage"} {
		s.press(command + "\r")
		s.expect("does not have its recorded hash")
		s.prompt("")
	}
	if strings.Contains(s.text(), forgedText) {
		t.Errorf("it shows what was forged: %s", s.text())
	}
}
