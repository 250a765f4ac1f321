//go:build unix

package interaction

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/event"
)

// TestMain turns the test binary into an answering process when INTERACTION_TEST_FILE is set.
func TestMain(m *testing.M) {
	if path := os.Getenv("INTERACTION_TEST_FILE"); path != "" {
		childAnswer(path, os.Getenv("INTERACTION_TEST_DIR"))
		return
	}
	os.Exit(m.Run())
}

// childAnswer answers the questions with the ids from standard input. If the word "die" precedes an id, it records
// the answer and kills itself before it wakes the asking process. It prints one line for each question: first, taken
// or fault.
func childAnswer(path, dir string) {
	log, err := eventlog.Open(context.Background(), path, eventlog.Options{Context: "default"})
	if err != nil {
		panic(err)
	}
	c := New(log, dir, time.Now)
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var how, id string
		if _, err := fmt.Sscan(lines.Text(), &how, &id); err != nil {
			panic(err)
		}
		a := Answer{Option: "once", By: fmt.Sprint(os.Getpid())}
		if how == "die" {
			q, err := Find(context.Background(), &log.Reader, event.InteractionID(id))
			if err == nil {
				_, err = log.Append(context.Background(), event.NewFact(event.InteractionAnswered, "user", q.Refs, a))
			}
			if err == nil {
				self, _ := os.FindProcess(os.Getpid()) // never fails for the own process
				_ = self.Kill()
			}
			panic(err)
		}
		var taken *TakenError
		switch err := c.Answer(context.Background(), event.InteractionID(id), a); {
		// After ErrAskerAsleep the answer still counts. The asking process was only slow.
		case err == nil, errors.Is(err, ErrAskerAsleep):
			fmt.Println("first")
		case errors.As(err, &taken):
			fmt.Println("taken")
		default:
			fmt.Println("fault", err)
		}
	}
	if err := log.Close(); err != nil {
		fmt.Println("fault", err)
	}
}

// answerer is a child process that answers questions.
type answerer struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Scanner
}

func startAnswerer(t *testing.T, path, dir string) *answerer {
	t.Helper()
	a := &answerer{cmd: exec.Command(os.Args[0])}
	a.cmd.Env = append(os.Environ(), "INTERACTION_TEST_FILE="+path, "INTERACTION_TEST_DIR="+dir)
	a.cmd.Stderr = os.Stderr
	var err error
	if a.stdin, err = a.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := a.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	a.out = bufio.NewScanner(out)
	if err := a.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return a
}

func (a *answerer) sendLine(t *testing.T, how string, id event.InteractionID) {
	t.Helper()
	if _, err := fmt.Fprintln(a.stdin, how, id); err != nil {
		t.Fatal(err)
	}
}

// awaitAnswer waits until a question is closed. Its answer is already on the log. awaitAnswer fails if the question
// stays open.
func awaitAnswer(t *testing.T, ticket *Ticket, how string) {
	t.Helper()
	select {
	case <-ticket.Done():
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s: nobody woke the asker", how)
	}
	if answer, lapsed, err := ticket.Outcome(); err != nil || lapsed != "" || answer.Option != "once" {
		t.Errorf("%s: %+v %s %v", how, answer, lapsed, err)
	}
}

// TestNoAnswerIsMissed lets seven processes answer the questions of another process. Exactly one answer counts. The
// asking process must notice the answer even if the answering process was killed before it could wake it.
func TestNoAnswerIsMissed(t *testing.T) {
	path, dir := folders(t)
	asker := process(t, path, dir)
	var all []*answerer
	for range 7 {
		all = append(all, startAnswerer(t, path, dir))
	}
	for n := range 12 {
		ticket := ask(t, asker, permission())
		first := 0
		for _, a := range all {
			a.sendLine(t, "answer", ticket.ID)
		}
		for _, a := range all {
			switch a.out.Scan(); a.out.Text() {
			case "first":
				first++
			case "taken":
			default:
				t.Errorf("question %d: %s", n, a.out.Text())
			}
		}
		if first != 1 {
			t.Errorf("question %d: %d answers counted", n, first)
		}
		awaitAnswer(t, ticket, "answered")
		if err := asker.Resolve(ticket, Resolution{Option: "once", Sent: true}); err != nil {
			t.Fatal(err)
		}
	}
	for range 3 {
		ticket := ask(t, asker, permission())
		killed := all[0]
		killed.sendLine(t, "die", ticket.ID)
		_ = killed.cmd.Wait() // the process was killed
		asker.Look(t.Context())
		awaitAnswer(t, ticket, "killed")
		if err := asker.Resolve(ticket, Resolution{Option: "once", Sent: true}); err != nil {
			t.Fatal(err)
		}
		all = all[1:]
	}
	for _, a := range all {
		if err := a.stdin.Close(); err != nil {
			t.Error(err)
		}
		for a.out.Scan() {
			t.Error(a.out.Text())
		}
		if err := a.cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
}
