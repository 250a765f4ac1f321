package service_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/perlica/perlica/service"
	"github.com/perlica/perlica/service/channel"
	"github.com/perlica/perlica/service/local"
)

// remote is a platform that keeps files until they are fetched.
type remote struct {
	*local.Channel
	fetch func(ctx context.Context, f channel.File) (string, error)
}

func (c remote) Poll(ctx context.Context, cursor string) ([]channel.Inbound, string, error) {
	list, next, err := c.Channel.Poll(ctx, cursor)
	for _, m := range list {
		for i, f := range m.Files {
			m.Files[i] = channel.File{Name: f.Name, Remote: f.Path}
		}
	}
	return list, next, err
}

func (c remote) Fetch(ctx context.Context, _ string, _ int, f channel.File) (string, error) {
	return c.fetch(ctx, f)
}

// remote runs a bridge with a channel that fetches files with the function "fetch".
func (w *world) remote(fetch func(ctx context.Context, f channel.File) (string, error)) *serving {
	return w.serve(local.DefaultLimits(), func(o *service.Options) {
		o.Backoff = time.Microsecond
		o.Channels[0] = remote{o.Channels[0].(*local.Channel), fetch}
	})
}

// file writes a file of the world and returns its path.
func (w *world) file(name, text string) string {
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// TestASlowFileHoldsUpItsContactOnly checks that a slow file delays only its own contact. The
// contact's next message comes after it.
func TestASlowFileHoldsUpItsContactOnly(t *testing.T) {
	w := newWorld(t)
	asked, arrives := make(chan struct{}), make(chan struct{})
	s := w.remote(func(ctx context.Context, f channel.File) (string, error) {
		close(asked)
		select {
		case <-arrives:
			return f.Remote, nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	})
	alice, bob := w.phone("alice"), w.phone("bob")
	w.pair(s, alice)
	w.pair(s, bob)
	alice.deliver(local.Message{Text: "see the file", Files: []string{w.file("slow.txt", "what it says")}})
	<-asked
	alice.say("behind it")
	bob.say("hello")
	bob.expect("You said: hello")
	if got := w.prompts(); strings.Contains(got, "behind it") || strings.Contains(got, "see the file") {
		t.Errorf("the agent was asked %s", got)
	}
	close(arrives)
	alice.expect("You said: see the file")
	alice.expect("You said: behind it")
	if !strings.Contains(w.prompts(), "what it says") {
		t.Error("the agent was not given the file")
	}
}

// TestAFileThatCannotBeHad checks that a message is answered without an unavailable file, and that the sender is told.
// A refused file is given up at once. A failing one is given up after three failures, and an unreachable one after many
// attempts.
func TestAFileThatCannotBeHad(t *testing.T) {
	w := newWorld(t)
	tries := map[string]int{} // by file; only one goroutine fetches files
	s := w.remote(func(_ context.Context, f channel.File) (string, error) {
		switch tries[f.Name]++; {
		case f.Name == "gone":
			return "", &channel.RejectedError{Why: "it is not there"}
		case f.Name == "far" || tries[f.Name] <= 2:
			return "", channel.ErrNotSent
		}
		return "", errors.New("the server answers 500")
	})
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.deliver(local.Message{Text: "see", Files: []string{"/gone", "/broken", "/far"}})
	alice.expect(
		"You said: see\n\n[gone could not be fetched: it is not there]\n\n[broken could not be fetched: the download " +
			"failed]\n\n[far could not be fetched: the download failed]")
	if tries["gone"] != 1 || tries["broken"] != 2+3 || tries["far"] != 12 {
		t.Errorf("they were tried %v times", tries)
	}
}

// TestFilesAreFetchedByTheNextBridge checks that the next bridge fetches the files that an earlier
// one could not.
func TestFilesAreFetchedByTheNextBridge(t *testing.T) {
	w := newWorld(t)
	asked := make(chan struct{})
	s := w.remote(func(ctx context.Context, _ channel.File) (string, error) {
		close(asked)
		<-ctx.Done()
		return "", ctx.Err()
	})
	alice := w.phone("alice")
	w.pair(s, alice)
	alice.deliver(local.Message{Text: "see the file", Files: []string{w.file("slow.txt", "what it says")}})
	<-asked
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	w.remote(func(_ context.Context, f channel.File) (string, error) { return f.Remote, nil })
	alice.expect("You said: see the file")
	if n := strings.Count(w.prompts(), "what it says"); n != 1 {
		t.Errorf("the agent was given the file %d times", n)
	}
}
