package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

var ciBlock = regexp.MustCompile("(?s)<!-- ci -->\n```sh\n(.*?)```")

// TestCIRecipe runs the recipe of docs/run.md as jobs of a CI do: each on a machine of its own,
// with the log from a cache and the key from a secret.
func TestCIRecipe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh")
	}
	page, err := os.ReadFile("../../docs/run.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := ciBlock.FindSubmatch(page)
	if parts == nil {
		t.Fatal("docs/run.md has no recipe")
	}
	recipe := strings.Replace(string(parts[1]), "--provider claude", "--provider predictable", 1)
	perlica, err := exec.LookPath("perlica")
	if err != nil {
		t.Fatal(err)
	}
	project := t.TempDir()
	if err := os.WriteFile(filepath.Join(project, "review.md"), []byte("hello"), 0o600); err != nil {
		t.Fatal(err)
	}
	job := func(secret string) (code int, result string) {
		t.Helper()
		cmd := exec.Command("sh", "-c", recipe)
		cmd.Dir = project
		cmd.Env = []string{
			"PATH=" + filepath.Dir(perlica) + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "CHECKPOINT_KEY=" + secret, "CI_JOB_NAME=review", "CI_COMMIT_SHA=1a2b",
		}
		out, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		t.Logf("%s", out)
		b, err := os.ReadFile(filepath.Join(project, "result.json"))
		if err != nil {
			t.Fatal(err)
		}
		return cmd.ProcessState.ExitCode(), string(b)
	}
	const key = "perlica checkpoint keys 1\nprivate AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	for i, want := range []string{`"calls":1`, `"calls":0,"replayed":true`, `"calls":0,"replayed":true`} {
		if code, result := job(key); code != 0 || !strings.Contains(result, want) || !strings.Contains(result, "You said: hello") {
			t.Errorf("job %d: code %d, %s", i+1, code, result)
		}
	}
	other := strings.Replace(key, "AAEC", "BBEC", 1)
	if code, result := job(other); code != 1 || !strings.Contains(result, "is not trusted") || strings.Contains(result, "You said") {
		t.Errorf("with another key: code %d, %s", code, result)
	}
}
