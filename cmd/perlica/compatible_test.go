package main

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestReleases runs testdata/release/files.txtar with the files of each released version.
func TestReleases(t *testing.T) {
	t.Parallel()
	releases, err := filepath.Glob(filepath.Join("..", "..", "testdata", "v*"))
	if err != nil || len(releases) == 0 {
		t.Fatal("no releases:", err)
	}
	for _, dir := range releases {
		t.Run(filepath.Base(dir), func(t *testing.T) {
			dir, err := filepath.Abs(dir)
			docs, derr := filepath.Abs(filepath.Join("..", "..", "docs"))
			if err := errors.Join(err, derr); err != nil {
				t.Fatal(err)
			}
			runScripts(t, []string{filepath.Join("testdata", "release", "files.txtar")}, func(env *testscript.Env) error {
				env.Setenv("RELEASE", dir)
				env.Setenv("DOCS", docs)
				return nil
			})
		})
	}
}
