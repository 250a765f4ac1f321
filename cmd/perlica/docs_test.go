package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perlica/perlica/cmd/perlica/acp"
	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/run"
)

var update = flag.Bool("update", false, "write the table of flags into docs/run.md")

// documents returns the pages of the documentation that show commands, by name.
func documents(t *testing.T) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		found, err := filepath.Glob(filepath.Join("..", "..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range found {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			docs[strings.TrimPrefix(filepath.ToSlash(name), "../../")] = string(b)
		}
	}
	if docs["README.md"] == "" || docs["docs/run.md"] == "" {
		t.Fatal("README.md or docs/run.md is missing")
	}
	return docs
}

// TestFlagsInDocs checks that the table in docs/run.md lists all flags of the command run.
func TestFlagsInDocs(t *testing.T) {
	const begin, end = "<!-- flags: begin -->\n", "<!-- flags: end -->\n"
	page := filepath.Join("..", "..", "docs", "run.md")
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	_, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatal("no markers")
	}
	run := run.Command(frame.NewApp(version))
	table := "| flag | meaning |\n|---|---|\n"
	run.Flags().VisitAll(func(f *pflag.Flag) {
		name, usage := pflag.UnquoteUsage(f)
		flag := "--" + f.Name
		if f.Shorthand != "" {
			flag = "-" + f.Shorthand + ", " + flag
		}
		if name != "" {
			flag += " " + strings.ToUpper(strings.TrimSuffix(name, "Array"))
		}
		table += "| `" + flag + "` | " + strings.ReplaceAll(usage, "|", `\|`) + " |\n"
	})
	want := head + begin + table + end + tail
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(b) {
		t.Error("docs/run.md: run go test ./cmd/perlica -run TestFlagsInDocs -update")
	}
}

// TestExitCodesInDocs checks that the help and docs/run.md list the same exit codes.
func TestExitCodesInDocs(t *testing.T) {
	_, rest, ok := strings.Cut(documents(t)["docs/run.md"], "\n## Exit codes\n")
	section, _, _ := strings.Cut(rest, "\n## ")
	help := run.Command(frame.NewApp(version)).Long
	_, codes, ok2 := strings.Cut(help, "Exit codes:")
	if !ok || !ok2 {
		t.Fatal("no exit codes")
	}
	list := func(pattern, text string) (found []string) {
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
			for code := range strings.SplitSeq(m[1], ", ") {
				found = append(found, code)
			}
		}
		slices.Sort(found)
		return found
	}
	in, said := list(`(?m)^\| ([0-9, ]+) \|`, section), list(`(?:^|; |\s)(\d+) `, codes)
	if !slices.Equal(in, said) {
		t.Errorf("docs/run.md has the codes %v, the help %v", in, said)
	}
}

var (
	inlineCode = regexp.MustCompile("`([^`]+)`")
	// aWord matches a word of a command line, such as list or list|show. It also matches a character that ends the
	// command.
	aWord = regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"|;&<>()` + "`" + `]|\b\|\b)+|[|;&<>()]`)
)

// shownCommands finds the command lines of Perlica on a page, in code blocks and in code within sentences.
func shownCommands(page string) (lines [][]string) {
	add := func(text string) {
		words := aWord.FindAllString(text, -1)
		for i, w := range words {
			if w != "perlica" || isFormat(words[i:]) || i > 0 && !strings.ContainsAny(words[i-1], "|;&(") &&
				!slices.Contains([]string{"$", "-m"}, words[i-1]) {
				continue
			}
			var args []string
			for _, arg := range words[i+1:] {
				if len(arg) == 1 && strings.Contains("|;&<>()#", arg) {
					break
				}
				args = append(args, arg)
			}
			lines = append(lines, args)
		}
	}
	var text strings.Builder
	code := false
	for line := range strings.Lines(page) {
		switch {
		case strings.HasPrefix(strings.TrimSpace(line), "```"):
			code = !code
		case code:
			add(strings.TrimSpace(line))
		default:
			text.WriteString(line)
		}
	}
	for _, m := range inlineCode.FindAllStringSubmatch(text.String(), -1) {
		add(m[1])
	}
	return lines
}

// isFormat reports whether words are the name of a log format, such as "perlica event 1". Such a name looks like a
// command.
func isFormat(words []string) bool {
	name := strings.Join(words, " ")
	return strings.HasPrefix(name, "perlica event 1") || strings.HasPrefix(name, "perlica consistency proof 1")
}

// TestCommandsInDocs checks that every command and flag on the pages exists.
func TestCommandsInDocs(t *testing.T) {
	for name, page := range documents(t) {
		for _, args := range shownCommands(page) {
			root := newApp(version).root(nil)
			root.InitDefaultCompletionCmd()
			root.InitDefaultVersionFlag()
			root.InitDefaultHelpCmd()
			if own, agents := acp.Split(root, args); len(agents) > 0 && agents[0] == "--cli" { // This is the login of claude.
				args = own
			}
			if prints(root, args) {
				args = append([]string{"run"}, args...)
			}
			if err := lookUp(root, args); err != nil {
				t.Errorf("%s: perlica %s: %v", name, strings.Join(args, " "), err)
			}
		}
	}
}

// placeholder matches a word that stands for a value, such as NAME.
var placeholder = regexp.MustCompile(`^[A-Z_…]+$|^…$|^\[`)

// lookUp follows a command line through the tree of commands. It returns an error if a command or a flag does not
// exist.
func lookUp(cmd *cobra.Command, args []string) error {
	for i, arg := range args {
		switch {
		case arg == "--":
			return nil
		case strings.HasPrefix(arg, "-") && arg != "-":
			if err := knowsFlag(cmd, arg); err != nil {
				return err
			}
		case !cmd.HasSubCommands() || placeholder.MatchString(arg):
		case i > 0 && strings.HasPrefix(args[i-1], "--"):
			// The word may be the value of a flag, or a subcommand.
		default:
			var next *cobra.Command
			for word := range strings.SplitSeq(arg, "|") {
				at := slices.IndexFunc(cmd.Commands(), func(c *cobra.Command) bool { return c.Name() == word || c.HasAlias(word) })
				if at < 0 {
					return fmt.Errorf("%s has no command %q", cmd.CommandPath(), word)
				}
				next = cmd.Commands()[at]
			}
			cmd = next
		}
	}
	return nil
}

func knowsFlag(cmd *cobra.Command, arg string) error {
	cmd.InitDefaultHelpFlag()
	name, _, _ := strings.Cut(strings.TrimLeft(arg, "-"), "=")
	f := cmd.Flag(name)
	if !strings.HasPrefix(arg, "--") {
		f = cmd.Flags().ShorthandLookup(name[:1])
	}
	if f == nil {
		return fmt.Errorf("%s has no flag %s", cmd.CommandPath(), arg)
	}
	return nil
}

// consoles matches the code blocks that show a terminal.
var consoles = regexp.MustCompile("(?ms)^```console\n(.*?)^```$")

// TestConsolesInDocs types the lines after "$ " of the pages into a terminal and compares the output with the page.
// An ellipsis on the page matches any text. Ids, times and durations are not compared.
func TestConsolesInDocs(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there is no sh")
	}
	for name, page := range documents(t) {
		blocks := consoles.FindAllStringSubmatch(page, -1)
		if len(blocks) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			home, project := t.TempDir(), t.TempDir()
			for _, block := range blocks {
				for _, step := range strings.Split("\n"+block[1], "\n$ ")[1:] {
					line, want, _ := strings.Cut(step, "\n")
					for strings.HasSuffix(line, `\`) { // The command continues in the next line.
						more, rest, _ := strings.Cut(want, "\n")
						line, want = line+"\n"+more, rest
					}
					got := typedInto(t, home, project, line)
					if !asShown(want).MatchString(veil(got)) {
						t.Errorf("$ %s\ngot:\n%s\nshown:\n%s", line, got, want)
					}
				}
			}
		})
	}
}

// typedInto types a line into a shell on a new terminal and returns the output.
func typedInto(t *testing.T, home, dir, line string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	perlica, err := exec.LookPath("perlica") // TestMain makes this test's binary the command perlica.
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", line)
	cmd.Dir = dir
	// PATH has no other folder, because the test must not start real agents of the user.
	cmd.Env = []string{"PATH=" + filepath.Dir(perlica), "HOME=" + home, "PERLICA_HOME=" + filepath.Join(home, "perlica"),
		"TERM=dumb"}
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 50, Cols: 100})
	if errors.Is(err, pty.ErrUnsupported) {
		t.Skip("there are no terminals")
	}
	if err != nil {
		t.Fatal(err)
	}
	defer screen.Close()
	// A process that the shell has started may live longer than the shell.
	defer context.AfterFunc(ctx, func() { screen.Close() })()
	var out bytes.Buffer
	_, _ = io.Copy(&out, screen) // Copy fails when the terminal is closed.
	var exit *exec.ExitError
	if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return strings.ReplaceAll(out.String(), "\r\n", "\n")
}

var veils = []*regexp.Regexp{
	regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`),
	regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d| [A-Z]{3,5})?`),
	regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d+)?\b`),
	regexp.MustCompile(`\b\d+(\.\d+)? ?(ms|µs|s)\b`),
	regexp.MustCompile(`"duration_ms":\d+`),
	regexp.MustCompile(`"agent":"[^"]*"`),
	regexp.MustCompile(`(?m)^in +/.*$`),
	regexp.MustCompile(`\S+ asks \(run\)`),
}

// firstUpdate matches the time of the first update in an output. The text appears only if this time can be measured.
var firstUpdate = regexp.MustCompile(`, first update after \S+`)

// veil replaces the parts of an output that differ between runs and users.
func veil(text string) string {
	text = firstUpdate.ReplaceAllString(text, "")
	for _, re := range veils {
		text = re.ReplaceAllString(text, "~")
	}
	return strings.TrimSpace(text)
}

// asShown returns an expression that matches the output if the page shows it correctly.
func asShown(text string) *regexp.Regexp {
	parts := strings.Split(veil(text), "…")
	for i, p := range parts {
		parts[i] = regexp.QuoteMeta(p)
	}
	return regexp.MustCompile(`(?s)^` + strings.Join(parts, ".*") + `$`)
}
