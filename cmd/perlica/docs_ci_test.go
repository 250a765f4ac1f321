package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/pb33f/go-yaml"
)

const ciKey = "perlica checkpoint keys 1\nprivate AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="

var ciBlock = regexp.MustCompile("(?s)<!-- ci -->\n```sh\n(.*?)```")

// TestCIRecipe runs the recipe of docs/ci.md like a CI system. Each job has its own machine, with the log from a
// cache and the key from a secret.
func TestCIRecipe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh")
	}
	page, err := os.ReadFile("../../docs/ci.md")
	if err != nil {
		t.Fatal(err)
	}
	parts := ciBlock.FindSubmatch(page)
	if parts == nil {
		t.Fatal("docs/ci.md has no recipe")
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
	sha := "1a2b"
	job := func(secret string) (code int, result string) {
		t.Helper()
		cmd := exec.Command("sh", "-ec", recipe) // Most CI systems run a recipe with these options.
		cmd.Dir = project
		cmd.Env = []string{
			"PATH=" + filepath.Dir(perlica) + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "CHECKPOINT_KEY=" + secret,
			"CI_JOB_NAME=review", "CI_COMMIT_SHA=" + sha,
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
	const key = ciKey
	for i, want := range []string{`"calls":1`, `"calls":0,"replayed":true`, `"calls":0,"replayed":true`} {
		if code, result := job(key); code != 0 || !strings.Contains(result, want) ||
			!strings.Contains(result, "You said: hello") {
			t.Errorf("job %d: code %d, %s", i+1, code, result)
		}
	}
	sha = "3c4d"
	if err := os.WriteFile(filepath.Join(project, "review.md"), []byte(`@ask execute "Build" command=make`),
		0o600); err != nil {
		t.Fatal(err)
	}
	if code, result := job(key); code != 0 || !strings.Contains(result, `"unanswered":1`) {
		t.Errorf("asked, and no one is there: code %d, %s", code, result)
	}
	other := strings.Replace(key, "AAEC", "BBEC", 1)
	if code, result := job(other); code != 1 || !strings.Contains(result, "is not trusted") ||
		strings.Contains(result, "You said") {
		t.Errorf("with another key: code %d, %s", code, result)
	}
}

// TestPullRequestAction runs the step "Run" of the GitHub Action as GitHub does, for a change in a repository. The
// second run prints the recorded answer.
func TestPullRequestAction(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil || runtime.GOOS == "windows" {
		t.Skip("there is no git, or no bash")
	}
	file, err := os.ReadFile("../../docs/ci/pull-request.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Jobs map[string]struct {
			Steps []struct{ Name, Run string }
		}
	}
	if err := yaml.Unmarshal(file, &action); err != nil {
		t.Fatal(err)
	}
	script := ""
	for _, step := range action.Jobs["review"].Steps {
		if step.Name == "Run" {
			script = strings.Replace(step.Run, "--provider claude", "--provider predictable", 1)
		}
	}
	if !strings.Contains(script, "predictable") {
		t.Fatalf("the action has no step that runs claude: %s", script)
	}
	perlica, err := exec.LookPath("perlica")
	if err != nil {
		t.Fatal(err)
	}
	repository, runner := t.TempDir(), t.TempDir()
	summary := filepath.Join(runner, "summary.md")
	env := []string{"PATH=" + filepath.Dir(perlica) + ":/usr/bin:/bin", "HOME=" + t.TempDir(), "RUNNER_TEMP=" + runner,
		"GITHUB_STEP_SUMMARY=" + summary,
		"CHECKPOINT_KEY=" + ciKey, "BASE=HEAD~1", "HEAD=HEAD", "GIT_CONFIG_NOSYSTEM=1"}
	shell := func(script string) (string, error) {
		cmd := exec.Command("bash", "-e", "-c", script)
		cmd.Dir, cmd.Env = repository, env
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := shell(`git init -q; git config user.name a; git config user.email a@example.org
		echo one > file; git add file; git commit -qm one; echo two > file; git commit -qam two`); err != nil {
		t.Fatal(err, out)
	}
	for _, want := range []string{"You said: Review the attached change", "this is the recorded result"} {
		if out, err := shell(script); err != nil || !strings.Contains(out, want) {
			t.Errorf("%v: %s\nwant %q", err, out, want)
		}
	}
	if text, err := os.ReadFile(summary); err != nil || strings.Count(string(text), "Review the attached change") != 2 {
		t.Errorf("the summary is %q, %v", text, err)
	}
}
