package team

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/perlica/perlica/service/team/hub"
	"github.com/perlica/perlica/service/team/hub/hubtest"
)

// BenchmarkWork measures an input from the queue to its outcome. The worker has two slots and the
// built-in agent. The second benchmark is a bare queue: two loops delete a row with SKIP LOCKED,
// let the same agent answer, and insert a row. Commits reach the disk. The third one adds as many
// syncs of a file as the worker makes for its log.
func BenchmarkWork(b *testing.B) {
	b.Run("worker", func(b *testing.B) {
		s := hubtest.Start(b, "fsync=on")
		m, alice := founded(b, s, "postgres")
		var drafts []Draft
		for i := range b.N {
			drafts = append(drafts, asks(fmt.Sprint("i", i), "@say x"))
		}
		submit(b, alice, drafts...)
		w, err := NewWorker(b.Context(), alice, WorkerOptions{Slots: 2, Projects: map[string]string{"website": m.dir},
			Note: func(string) {}})
		if err != nil {
			b.Fatal(err)
		}
		drain, stop := context.WithCancel(context.Background())
		over := make(chan error, 1)
		b.ResetTimer()
		go func() { over <- w.Run(drain, context.Background()) }()
		tick := time.NewTicker(25 * time.Millisecond) // rarely, because each look counts all rows
		for answered := 0; answered < b.N; <-tick.C {
			counts, err := alice.Hub.Counts(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			answered = counts["responded"]
		}
		b.StopTimer()
		stop()
		if err := <-over; err != nil {
			b.Error(err)
		}
		if err := w.Close(); err != nil {
			b.Error(err)
		}
	})
	for name, syncs := range map[string]int{"bare": 0, "bare-with-as-many-commits": 6} {
		b.Run(name, func(b *testing.B) {
			s := hubtest.Start(b, "fsync=on")
			s.SQL(b, "postgres", fmt.Sprintf(`
				CREATE TABLE bare (n bigint PRIMARY KEY, text text);
				CREATE TABLE done (n bigint PRIMARY KEY, text text);
				INSERT INTO bare SELECT n, '@say x' FROM generate_series(1, %d) n`, b.N))
			dir := b.TempDir()
			var loops sync.WaitGroup
			b.ResetTimer()
			for loop := range 2 {
				loops.Go(func() {
					h, err := hub.Open(s.URL("owner", "postgres"))
					if err != nil {
						b.Error(err)
						return
					}
					log, err := os.Create(filepath.Join(dir, fmt.Sprint("log", loop)))
					for more := err == nil; more && err == nil; {
						if more, err = bareInput(b.Context(), h, dir); more && err == nil {
							err = synced(log, syncs)
						}
					}
					if err = errors.Join(err, log.Close(), h.Close()); err != nil {
						b.Error(err)
					}
				})
			}
			loops.Wait()
		})
	}
}

// synced writes a page to a file and syncs it, n times.
func synced(f *os.File, n int) error {
	for range n {
		_, err := f.Write(make([]byte, 8192))
		if err = errors.Join(err, f.Sync()); err != nil {
			return err
		}
	}
	return nil
}

// bareInput takes a row, lets an agent answer it, and stores the answer. It returns false if the
// queue is empty.
func bareInput(ctx context.Context, h *hub.Hub, dir string) (more bool, err error) {
	var n int64
	var text string
	err = h.Do(ctx, func(ctx context.Context, c *hub.Conn) error {
		return c.QueryRow(ctx,
			`DELETE FROM public.bare WHERE n = (SELECT n FROM public.bare ORDER BY n LIMIT 1 FOR UPDATE SKIP LOCKED) RETURNING n, text`).Scan(&n, &text)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	answer, err := bareCall(dir, text)
	if err != nil {
		return false, err
	}
	return true, h.Do(ctx, func(ctx context.Context, c *hub.Conn) error {
		_, err := c.Exec(ctx, `INSERT INTO public.done VALUES ($1, $2)`, n, answer)
		return err
	})
}

// bareCall lets a process of the built-in agent answer a text. It returns the last line of the
// agent.
func bareCall(dir, text string) (line string, err error) {
	c := exec.Command(os.Args[0], "agent", "predictable")
	c.Dir = dir
	in, err := c.StdinPipe()
	if err != nil {
		return "", err
	}
	out, err := c.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := c.Start(); err != nil {
		return "", err
	}
	lines := bufio.NewScanner(out)
	session := "session-1" // the built-in agent's first session
	for id, request := range []string{
		`"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}`,
		fmt.Sprintf(`"method":"session/new","params":{"cwd":%q,"mcpServers":[]}`, dir),
		fmt.Sprintf(`"method":"session/prompt","params":{"sessionId":%q,"prompt":[{"type":"text","text":%q}]}`, session,
			text),
	} {
		if _, err := fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,%s}`+"\n", id, request); err != nil {
			return "", err
		}
		for answered := fmt.Sprintf(`"id":%d,`, id); lines.Scan(); {
			if line = lines.Text(); strings.Contains(line, answered) ||
				strings.Contains(line, strings.TrimSuffix(answered, ",")+"}") {
				break
			}
		}
	}
	if strings.Contains(line, `"error"`) || !strings.Contains(line, "end_turn") {
		return "", fmt.Errorf("the agent answers %q", line)
	}
	if err := in.Close(); err != nil {
		return "", err
	}
	_, _ = io.Copy(io.Discard, out) // the agent ends with its input
	return line, c.Wait()
}
