package trail

import (
	"os"
	"path/filepath"
	"testing"
)

func TestUsageCountsTheTrailOnly(t *testing.T) {
	dir := t.TempDir()
	if files, bytes, err := Usage(filepath.Join(dir, "none")); files != 0 || bytes != 0 || err != nil {
		t.Errorf("no folder: %d, %d, %v", files, bytes, err)
	}
	for name, size := range map[string]int{
		"perlica-20261121T031517.042-4711.jsonl":                         100,
		"perlica-20261121T031517.042-4711-2026-11-21T04-00-00.000.jsonl": 20,
		"perlica-20261121T031517.042-4711.lock":                          3,
		"notes.txt":                                                      4000,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if files, bytes, err := Usage(dir); files != 2 || bytes != 120 || err != nil {
		t.Errorf("got %d, %d, %v", files, bytes, err)
	}
}
