package eventlog

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	"github.com/perlica/perlica/eventlog/event"
)

// TestManyFirstOpens lets several handles create the same file at once. The later ones must wait
// for the first.
func TestManyFirstOpens(t *testing.T) {
	dir := t.TempDir()
	for round := range 20 {
		path := filepath.Join(dir, fmt.Sprintf("%d.db", round))
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				l, err := Open(t.Context(), path, Options{Context: "default"})
				if err != nil {
					t.Errorf("round %d: %v", round, err)
					return
				}
				if _, err := l.Append(t.Context(), fact(event.SessionCreated, event.Refs{})); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
				if err := l.Close(); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		wg.Wait()
	}
}
