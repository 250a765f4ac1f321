package interaction

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
)

// process returns a coordinator with its own log handle, as if it were another process.
func process(t *testing.T, path, dir string) *Coordinator {
	t.Helper()
	log, err := eventlog.Open(t.Context(), path, eventlog.Options{Context: "default"})
	if err != nil {
		t.Fatal(err)
	}
	c := New(log, dir, time.Now)
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), log.Close()); err != nil {
			t.Error(err)
		}
	})
	return c
}

// folders returns the path of a log, and a folder with a path that is short enough for sockets.
func folders(t *testing.T) (path, dir string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "pq")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return filepath.Join(t.TempDir(), "eventlog.db"), dir
}

func permission() Question {
	return Question{
		Title: "run ls",
		Options: []Option{
			{ID: "always", Label: "Always", Kind: "allow_always"},
			{ID: "once", Label: "Yes", Kind: "allow_once"},
			{ID: "no", Label: "No", Kind: "reject_once"},
		},
		Refs: event.Refs{Run: "r"},
	}
}

func ask(t *testing.T, c *Coordinator, q Question) *Ticket {
	t.Helper()
	if err := c.Reachable(); err != nil {
		t.Fatal(err)
	}
	ticket, err := c.Ask(t.Context(), q)
	if err != nil {
		t.Fatal(err)
	}
	return ticket
}

func TestFirstAnswerWinsAcrossProcesses(t *testing.T) {
	path, dir := folders(t)
	asker := process(t, path, dir)
	ticket := ask(t, asker, permission())
	others := []*Coordinator{asker, process(t, path, dir), process(t, path, dir)}
	var wg sync.WaitGroup
	var mu sync.Mutex
	won, lost := 0, 0
	for i := range 48 {
		wg.Go(func() {
			err := others[i%3].Answer(context.Background(), ticket.ID, Answer{Option: "once", By: fmt.Sprint("p", i)})
			var taken *TakenError
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				won++
			case errors.As(err, &taken) && taken.Answer != nil && taken.Answer.By != "":
				lost++
			default:
				t.Errorf("answer %d: %v", i, err)
			}
		})
	}
	wg.Wait()
	<-ticket.Done()
	answer, lapsed, err := ticket.Outcome()
	if won != 1 || lost != 47 || err != nil || lapsed != "" || answer.Option != "once" {
		t.Errorf("%d won, %d lost; outcome %+v %s %v", won, lost, answer, lapsed, err)
	}
}

func TestAnswerAndLapseCannotBothWin(t *testing.T) {
	path, dir := folders(t)
	asker, other := process(t, path, dir), process(t, path, dir)
	for range 20 {
		ticket := ask(t, asker, permission())
		var answered error
		var wg sync.WaitGroup
		wg.Go(func() { answered = other.Answer(context.Background(), ticket.ID, Answer{Option: "once", By: "p"}) })
		wg.Go(func() {
			if err := asker.Lapse(context.Background(), ticket, TimeUp); err != nil {
				t.Error(err)
			}
		})
		wg.Wait()
		<-ticket.Done()
		answer, lapsed, err := ticket.Outcome()
		if err != nil || (answer == nil) == (lapsed == "") || (answered == nil) != (answer != nil) {
			t.Fatalf("answer %+v, lapsed %q, %v; the answerer was told %v", answer, lapsed, err, answered)
		}
	}
}

func TestQuestionsInAnyOrder(t *testing.T) {
	path, dir := folders(t)
	asker, other := process(t, path, dir), process(t, path, dir)
	var tickets []*Ticket
	for range 3 {
		tickets = append(tickets, ask(t, asker, permission()))
	}
	if open := asker.Open(); len(open) != 3 || open[0].ID != tickets[0].ID {
		t.Fatalf("open: %v", open)
	}
	for i, option := range []string{"always", "once", "no"} {
		ticket := tickets[2-i]
		if err := other.Answer(t.Context(), ticket.ID, Answer{Option: option, By: "p",
			Always: option == "always"}); err != nil {
			t.Fatal(err)
		}
		<-ticket.Done()
		if a, _, _ := ticket.Outcome(); a == nil || a.Option != option {
			t.Errorf("question %d got %+v, want %s", 2-i, a, option)
		}
		if err := asker.Resolve(ticket, Resolution{Option: option, Sent: true}); err != nil {
			t.Fatal(err)
		}
	}
	if open := asker.Open(); len(open) != 0 {
		t.Errorf("still open: %v", open)
	}
}

func TestWhatDoesNotCountIsRecorded(t *testing.T) {
	path, dir := folders(t)
	c := process(t, path, dir)
	q := permission()
	q.Word = "destroy"
	ticket := ask(t, c, q)
	for _, tc := range []struct {
		a    Answer
		want error
	}{
		{Answer{Option: "once"}, errNoName},
		{Answer{Option: "yes", By: "p"}, ErrNotAnOption},
		{Answer{Option: "", By: "p"}, ErrNotAnOption},
		{Answer{Option: "once", By: "p"}, ErrWord},
		{Answer{Option: "once", By: "p", Text: "Destroy"}, ErrWord},
		{Answer{Option: "always", By: "p", Text: "destroy "}, ErrWord},
		{Answer{Option: "always", By: "p", Text: "destroy"}, ErrAlways},
	} {
		if err := c.Answer(t.Context(), ticket.ID, tc.a); !errors.Is(err, tc.want) {
			t.Errorf("%+v: %v, want %v", tc.a, err, tc.want)
		}
	}
	if err := c.Answer(t.Context(), "none", Answer{Option: "once", By: "p"}); !errors.Is(err, ErrUnknownQuestion) {
		t.Errorf("unknown question: %v", err)
	}
	n := 0
	for _, err := range c.log.Events(t.Context(), event.Query{Types: []event.Type{event.InteractionAnswerRejected}}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 7 {
		t.Errorf("%d rejections on record, want 7", n)
	}
	if err := c.Answer(t.Context(), ticket.ID, Answer{Option: "once", By: "p", Text: "destroy"}); err != nil {
		t.Errorf("the right word: %v", err)
	}
}

// TestFreeTextApprovesNothing checks that a refusal or a vague text never chooses an option.
func TestFreeTextApprovesNothing(t *testing.T) {
	q := permission()
	for _, s := range []string{
		"", " ", "y", "yes", "Yes.", "yes please", "YES", "ok", "okay", "sure", "go ahead", "don't allow",
		"do not allow", "not ok",
		"no, ok wait", "allow", "allow?", "never", "1.", "1)", "#1", "1 or 2", "-1", "+1", "0", "4", "01x", "1e0",
		"0001", "١", "١٢", "٣", "２", "२", "𝟏", "1١", "½", "①", "Ⅰ", "一", "二",
		"2?", "2 no", "不可以", "先别", "可以", "好的", "不", "等等", "别", "是", "否", "拒绝", "允许", "同意", "不同意", "once?", "Once",
		"allow_once", "al", "Always!",
	} {
		if o, err := q.Choose(s); err == nil {
			t.Errorf("%q chose %s", s, o.ID)
		}
	}
	for s, want := range map[string]string{
		"1": "always", "2": "once", "3": "no", " 2 ": "once", "once": "once", "Yes": "once", "No": "no", "02": "once",
	} {
		if o, err := q.Choose(s); err != nil || o.ID != want {
			t.Errorf("%q chose %q, %v; want %s", s, o.ID, err, want)
		}
	}
}

func TestChooseRefusesTheAmbiguous(t *testing.T) {
	q := Question{Options: []Option{{ID: "2", Label: "Yes"}, {ID: "1", Label: "No"}, {ID: "a", Label: "Same"},
		{ID: "b", Label: "Same"}}}
	for _, s := range []string{"1", "2", "Same"} {
		if o, err := q.Choose(s); !errors.Is(err, ErrAmbiguous) {
			t.Errorf("%q chose %+v, %v", s, o, err)
		}
	}
	if o, err := q.Choose("a"); err != nil || o.ID != "a" {
		t.Errorf("a: %+v, %v", o, err)
	}
}

// TestLabelsThatSayTheContrary checks a yes with a label such as "No", because an agent may choose any label. If a
// person types this label, the answer must not be yes.
func TestLabelsThatSayTheContrary(t *testing.T) {
	for _, label := range []string{
		"no", "No", "Reject", "reject", "No, thanks", "Don't allow", "Don’t allow", "Cancel", "nein", "не надо", "不",
		"拒绝", "取消", "denied", "reject_once", "no-thanks",
	} {
		for _, o := range []Option{{ID: "a", Label: label, Kind: "allow_once"},
			{ID: label, Label: "a", Kind: "allow_always"}, {ID: "a", Label: label, Kind: "other"}} {
			q := Question{Options: []Option{o, {ID: "b", Label: "c", Kind: "reject_once"}}}
			if got, err := q.Choose(label); !errors.Is(err, ErrAmbiguous) {
				t.Errorf("%q chose %+v, %v", label, got, err)
			}
			if got, err := q.Choose("1"); err != nil || got != o {
				t.Errorf("the number of %q chose %+v, %v", label, got, err)
			}
		}
		q := Question{Options: []Option{{ID: "n", Label: label, Kind: "reject_once"}}}
		if got, err := q.Choose(label); err != nil || got.ID != "n" {
			t.Errorf("as a no, %q chose %+v, %v", label, got, err)
		}
	}
	for _, label := range []string{"Yes", "Allow once", "now", "Knot", "Allow for this session", "Nonstop", "note"} {
		q := Question{Options: []Option{{ID: "y", Label: label, Kind: "allow_once"}}}
		if got, err := q.Choose(label); err != nil || got.ID != "y" {
			t.Errorf("%q chose %+v, %v", label, got, err)
		}
	}
}

// TestSocketsOfALongFolder uses a folder whose path is too long for sockets. The sockets are in the folder for
// temporary files instead, and nothing stays there.
func TestSocketsOfALongFolder(t *testing.T) {
	path, dir := folders(t)
	t.Setenv("TMPDIR", dir)
	long := filepath.Join(dir, strings.Repeat("a-folder-with-a-long-name/", 6))
	left := func() (names []string) {
		t.Helper()
		entries, err := os.ReadDir(os.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			names = append(names, e.Name())
		}
		return names
	}
	asker, other := process(t, path, long), process(t, path, long)
	ticket := ask(t, asker, permission())
	if err := other.Reachable(); err != nil {
		t.Fatal(err)
	}
	if err := asker.Close(); err != nil {
		t.Fatal(err)
	}
	if names := left(); len(names) != 1 {
		t.Errorf("while a process listens, the folder for temporary files has %q", names)
	}
	if err := asker.Reachable(); err != nil {
		t.Fatal(err)
	}
	if err := other.Answer(t.Context(), ticket.ID, Answer{Option: "once", By: "p"}); err != nil {
		t.Fatal(err)
	}
	<-ticket.Done()
	if err := errors.Join(asker.Close(), other.Close()); err != nil {
		t.Fatal(err)
	}
	if names := left(); len(names) != 0 {
		t.Errorf("after the end, the folder for temporary files has %q", names)
	}
	t.Run("long temporary folder", func(t *testing.T) {
		t.Setenv("TMPDIR", long)
		if err := os.MkdirAll(long, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := process(t, path, filepath.Join(long, "sockets")).Reachable(); err == nil {
			t.Error("a socket with a long path was made")
		}
		if names := left(); len(names) != 0 {
			t.Errorf("after an error, the folder for temporary files has %q", names)
		}
	})
}

func TestAnswerToADeadAsker(t *testing.T) {
	path, dir := folders(t)
	other := process(t, path, dir)
	log, err := eventlog.Open(t.Context(), path, eventlog.Options{})
	if err != nil {
		t.Fatal(err)
	}
	dead := New(log, dir, time.Now)
	ticket := ask(t, dead, permission())
	if err := errors.Join(dead.Close(), log.Close()); err != nil {
		t.Fatal(err)
	}
	if err := other.Answer(t.Context(), ticket.ID, Answer{Option: "once", By: "p"}); !errors.Is(err, ErrAskerGone) {
		t.Errorf("answer to nobody: %v", err)
	}
}

func TestSocketsOfTheKilledAreSwept(t *testing.T) {
	path, dir := folders(t)
	left := filepath.Join(dir, "0123456789abcdef.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: left, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false) // leaves the socket file, as a killed process does
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	living := process(t, path, dir)
	ticket := ask(t, living, permission())
	if _, err := os.Lstat(left); err != nil {
		t.Errorf("a young socket was swept: %v", err)
	}
	long := time.Now().Add(-time.Hour)
	for _, name := range []string{left, socketPath(dir, living.log.Writer())} {
		if err := os.Chtimes(name, long, long); err != nil {
			t.Fatal(err)
		}
	}
	if err := process(t, path, dir).Reachable(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the socket is still there: %v", err)
	}
	if err := process(t, path, dir).Answer(t.Context(), ticket.ID, Answer{Option: "once", By: "p"}); err != nil {
		t.Errorf("the socket of a living process was swept: %v", err)
	}
}
