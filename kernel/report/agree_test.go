package report_test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/eventlog/store/storetest"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/kernel/report"
)

var (
	agreeLogs = flag.Int("agree", 24, "on how many damaged logs the two verifiers are compared")
	agreeSeed = flag.Uint64("agree-seed", 1, "what they are made from")
)

// TestVerifiersAgree compares 'perlica log verify' with docs/verify.py. Some logs are sound, some have events in a
// wrong order, and some have changed rows. Both must name the same kind of damage at the same event, or no damage.
func TestVerifiersAgree(t *testing.T) {
	// python3 may be a wrapper script that takes longer than the verification.
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skip("NOT TESTED: both verifiers agree: python3 is not installed:", err)
	}
	py := strings.TrimSpace(string(out))
	keys, err := evidence.MakeKeys(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sound, damaged := 0, map[string]int{}
	for i := range *agreeLogs {
		dice := rand.New(rand.NewPCG(*agreeSeed, uint64(i)))
		path := filepath.Join(t.TempDir(), "eventlog.db")
		origin := randomLog(t, dice, path, keys, i%3 == 0) // verifiers may name two damages in another order
		change := ""
		if i%3 > 0 {
			change = randomChange(dice)
			changeLog(t, path, change)
		}
		var args []string
		opt := verify.Options{Audit: report.NewAuditor()}
		if dice.IntN(2) == 0 {
			vkey := keys.VerifierKeys(origin)[0]
			k, err := note.NewVerifier(vkey)
			if err != nil {
				t.Fatal(err)
			}
			args = []string{"--key", vkey}
			opt.Keys, opt.Signers, opt.RequireSignature = []note.Verifier{k}, []note.Verifier{k}, true
		}
		ours, theirs := goSays(t, path, opt), pySays(t, py, path, args)
		if ours != theirs {
			t.Errorf("-agree-seed %d, log %d, %q %v: log verify says %q, verify.py %q", *agreeSeed, i, change, args, ours,
				theirs)
		}
		if ours == "OK" {
			sound++
		}
		damaged[strings.Split(ours, " ")[0]]++
	}
	t.Logf("-agree-seed %d: %d of %d are sound; %v", *agreeSeed, sound, *agreeLogs, damaged)
	if *agreeLogs >= 24 && (sound == 0 || damaged["DAMAGED:"] == 0) {
		t.Error("there is too little to agree on")
	}
}

// randomLog writes a log with random runs. If wild is true, the runs have random faults. It skips events that the log
// refuses.
func randomLog(t *testing.T, dice *rand.Rand, path string, keys *evidence.Keys, wild bool) (origin string) {
	t.Helper()
	ctx := context.Background()
	l, err := eventlog.Open(ctx, path, eventlog.Options{Context: "default", Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	for n := range 2 + dice.IntN(6) {
		for _, e := range randomRun(dice, n, wild) {
			_, _ = l.Append(ctx, e) // the log refuses an event that conflicts
		}
	}
	if dice.IntN(8) == 0 {
		for range 300 {
			_ = l.Record(event.Event{Type: event.NotificationReceived, Class: event.Frame, Actor: "agent"})
		}
	}
	if _, err := l.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	for range dice.IntN(3) {
		_, _ = l.Append(ctx, event.NewFact(event.Truncated, "perlica", event.Refs{}, struct{}{}))
	}
	if origin, err = l.Origin(ctx); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return origin
}

// randomRun returns the events of a run without faults. If wild is true, some events are missing, doubled, or have
// wrong ids.
func randomRun(dice *rand.Rand, n int, wild bool) (list []event.Event) {
	refs := event.Refs{Session: "s", Run: event.RunID(fmt.Sprint("r", n)), Trace: event.TraceID(fmt.Sprint("t", n)),
		Input: event.InputID(fmt.Sprint("i", n))}
	asked := refs
	asked.Interaction = event.InteractionID(fmt.Sprint("q", n))
	line := func(ty event.Type, text string) event.Event {
		return event.Event{Type: ty, Class: event.Frame, Actor: "agent", Refs: refs, Payload: []byte(text)}
	}
	prompts := []string{`{"id":1,"method":"session/prompt"}`, `{"method":"x","method":"session/prompt"}`,
		`{"METHOD":"session/prompt"}`, `["session/prompt"]`, `{"method":"session/prompt"} x`}
	prompt := prompts[0]
	by := []string{`{"by":"alice"}`, `{"BY":"alice"}`, `{"by":""}`, `{"by":7}`, `{"by":"a","by":null}`, `{}`}
	answer := by[0]
	if wild {
		prompt, answer = prompts[dice.IntN(len(prompts))], by[dice.IntN(len(by))]
	}
	fact := func(ty event.Type, r event.Refs, text string) event.Event {
		return event.Event{Type: ty, Class: event.Fact, Actor: "perlica", Refs: r, Payload: []byte(text)}
	}
	list = []event.Event{
		fact(event.MessageReceived, refs, `{}`), fact(event.Requested, refs, `{}`), line(event.RequestSent, prompt),
		fact(event.InteractionRequested, asked, `{}`), fact(event.InteractionAnswered, asked, answer),
		fact(event.ReplySent, asked, `{}`), fact(event.InteractionResolved, asked, `{}`),
		fact(event.PolicyDecided, refs, `{}`), fact(event.ReplySent, refs, `{}`),
		fact(event.Responded, refs, `{}`), fact(event.CallEnforced, refs, `{}`),
	}
	if !wild {
		return list
	}
	i, j := dice.IntN(len(list)), dice.IntN(len(list))
	switch dice.IntN(6) {
	case 0:
		list = append(list[:i], list[i+1:]...)
	case 1:
		list[i], list[j] = list[j], list[i]
	case 2:
		list = append(list, list[i])
	case 3:
		list[i].Trace = "other"
	case 4:
		list[i].Input, list[i].Session = "i0", "other"
	case 5:
		list[i].Run, list[i].Interaction = "", ""
	}
	return list
}

// randomChange returns an SQL statement that changes a log without Perlica.
func randomChange(dice *rand.Rand) string {
	pick := func(list ...string) string { return list[dice.IntN(len(list))] }
	seq := pick("(SELECT max(seq) FROM events)", "1", "2", fmt.Sprint(1+dice.IntN(30)))
	id := pick("1", "(SELECT max(id) FROM checkpoints)", "2")
	return pick(
		`INSERT OR REPLACE INTO nodes VALUES (`+pick("8", "16", "24", "32", "56", "64", "3", "0", "-8", "9")+`, `+
			pick("0", "1", "7", "-1", "1000000", "1152921504606846976")+`, `+pick("zeroblob(32)", "x'00'")+`)`,
		`DELETE FROM nodes`,
		`UPDATE nodes SET hash = zeroblob(32)`,
		`DELETE FROM checkpoints`,
		`DELETE FROM checkpoints WHERE id = `+id,
		`UPDATE checkpoints SET size = `+pick("0", "-1", "3", "size + 1", "9223372036854775807")+` WHERE id = `+id,
		`UPDATE checkpoints SET note = `+pick(`''`, `replace(note, char(10), char(13, 10))`, `note || 'x'`,
			`note || char(10)`, `note || note`, `substr(note, 2)`, `replace(note, '=', '')`)+` WHERE id = `+id,
		`INSERT INTO checkpoints (size, note) SELECT size, note FROM checkpoints WHERE id = `+id,
		`INSERT OR REPLACE INTO open_runs VALUES ('`+pick("r0", "r1", "never")+`', `+pick("2", "1", "999")+`)`,
		`DELETE FROM open_runs`,
		`INSERT INTO withheld VALUES (`+seq+`, 'masked')`,
		`UPDATE events SET payload = NULL WHERE seq = `+seq,
		`UPDATE events SET payload = x'7b7d20' WHERE seq = `+seq,
		`UPDATE events SET actor = 'nobody' WHERE seq = `+seq,
		`UPDATE events SET leaf = zeroblob(32) WHERE seq = `+seq,
		`DELETE FROM events WHERE seq = `+seq,
		`DELETE FROM events WHERE seq > `+seq,
		`INSERT INTO absent VALUES (`+seq+`, `+pick("0", "1", "60", "-1")+`, `+pick("zeroblob(32)", "x'00'")+`)`,
		`CREATE TABLE more (x)`,
		`DROP TABLE withheld`,
	)
}

func changeLog(t *testing.T, path, change string) {
	t.Helper()
	db, err := sqlx.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	// A forger would restore the triggers. verify.py does not look for missing ones.
	for _, statement := range store.Statements() {
		if name, ok := strings.CutPrefix(statement, "CREATE TRIGGER "); ok {
			if _, err := db.Exec("DROP TRIGGER " + strings.Fields(name)[0]); err != nil {
				t.Fatal(err)
			}
			defer db.Exec(statement)
		}
	}
	if _, err := db.Exec(storetest.Editable + change); err != nil && !strings.Contains(err.Error(), "constraint") {
		t.Fatal(change, err)
	}
}

// goSays returns the verdict of verify.Log in the words of docs/verify.py.
func goSays(t *testing.T, path string, opt verify.Options) string {
	t.Helper()
	r, err := store.OpenReader(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	rep, err := verify.Log(t.Context(), r, opt)
	switch {
	case err != nil:
		return err.Error()
	case rep.OK():
		return "OK"
	}
	return fmt.Sprintf("DAMAGED: %s at event %d", rep.Findings[0].Kind, rep.FirstBad)
}

func pySays(t *testing.T, py, path string, args []string) string {
	t.Helper()
	cmd := exec.Command(py, append([]string{filepath.Join("..", "..", "docs", "verify.py"), path}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	verdict := lines[len(lines)-1]
	if (err == nil) != (verdict == "OK") {
		t.Errorf("verify.py says %q and ends with %v", verdict, err)
	}
	return verdict
}
