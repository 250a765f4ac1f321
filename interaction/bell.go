package interaction

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// bell is how another process wakes this one: it connects to a socket and says nothing.
// What happened stands on the log.
type bell struct {
	listener net.Listener
	wg       sync.WaitGroup
}

// socketPath names the socket of the process that writes the log through the given
// handle. The name is hashed: the path of a socket is limited to 104 bytes.
func socketPath(dir, writer string) string {
	sum := sha256.Sum256([]byte(writer))
	return filepath.Join(dir, hex.EncodeToString(sum[:8])+".sock")
}

// ring starts listening, if this process does not listen yet.
func (c *Coordinator) ring() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bell != nil || c.dir == "" {
		return nil
	}
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return fmt.Errorf("interaction: the folder for sockets: %w", err)
	}
	l, err := net.Listen("unix", socketPath(c.dir, c.log.Writer()))
	if err != nil {
		return fmt.Errorf("interaction: listen for answers: %w", err)
	}
	b := &bell{listener: l}
	b.wg.Go(func() {
		for {
			conn, err := l.Accept()
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err != nil { // too many open files; the caller is told nothing and may come again
				time.Sleep(acceptPause)
				continue
			}
			c.collect(context.Background())
			_ = conn.Close() // nothing was written to it; closing it tells the caller that we looked
		}
	})
	c.bell = b
	return nil
}

func (b *bell) close() error {
	err := b.listener.Close()
	b.wg.Wait()
	return err
}

// acceptPause keeps a socket that cannot be served from taking a processor.
const acceptPause = 50 * time.Millisecond

// wakeTimeout is how long a living asker may take to look at the log.
const wakeTimeout = 5 * time.Second

// ErrAskerGone says that an answer is on the log, but that nobody waits for it any more.
var ErrAskerGone = errors.New("the process that asked is gone")

// wake makes the process behind a log handle look at the log, and waits until it has.
func (c *Coordinator) wake(writer string) error {
	conn, err := net.DialTimeout("unix", socketPath(c.dir, writer), wakeTimeout)
	if err != nil {
		return fmt.Errorf("interaction: %w: %w", ErrAskerGone, err)
	}
	defer func() { _ = conn.Close() }() // nothing was written to it
	if err := conn.SetReadDeadline(time.Now().Add(wakeTimeout)); err != nil {
		return err
	}
	_, _ = conn.Read(make([]byte, 1)) // ends when the asker closes, which is the sign
	return nil
}
