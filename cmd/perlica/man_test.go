package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"
)

var manDir = flag.String("man", "", "write the manual's pages into this folder")

// TestManPages writes the manual, with one page for each command, and checks that no page is missing. 'make dist'
// uses the written files.
func TestManPages(t *testing.T) {
	dir := *manDir
	if dir == "" {
		dir = t.TempDir()
	}
	epoch, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		epoch = 0
	}
	date := time.Unix(epoch, 0).UTC()
	a := newApp(version)
	root := a.root(nil)
	root.DisableAutoGenTag = true
	visit(root, func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !slices.Contains([]string{"", "false", "0", "0s", "[]"}, f.DefValue) && !strings.Contains(f.Usage, "(default") {
				f.Usage += " (default " + f.DefValue + ")"
			}
		})
	})
	header := &doc.GenManHeader{Section: "1", Source: "Perlica", Manual: "Perlica", Date: &date}
	if err := doc.GenManTree(root, header, dir); err != nil {
		t.Fatal(err)
	}
	visit(root, func(cmd *cobra.Command) {
		name := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1")
		page, err := os.ReadFile(name)
		if err != nil || !strings.Contains(string(page), ".SH NAME") {
			t.Errorf("%s: %v", name, err)
		}
		text := asOptions(string(page), cmd)
		if strings.ContainsRune(text, '`') || strings.Contains(text, `\fP=`) || strings.Contains(text, "[=") {
			t.Errorf("%s: it shows how the program has its flags:\n%s", name, text)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	})
	run, err := os.ReadFile(filepath.Join(dir, "perlica-run.1"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"\n.TP\n\\fB-f\\fP, \\fB--file\\fP \\fIfile\\fP\nread the text", "\n.TP\n\\fB--json\\fP\n",
		"text, json or stream-json (default text)\n",
	} {
		if !strings.Contains(string(run), want) {
			t.Errorf("perlica-run.1 does not have %q:\n%s", want, run)
		}
	}
}

// visit calls f with each command that has a page in the manual.
func visit(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			visit(sub, f)
		}
	}
}

var optionHead = regexp.MustCompile(`(?m)^(?:\.PP\n)?((?:\\fB-\w\\fP, )?\\fB--([a-z-]+)\\fP)\[?=.*\n\t`)

// asOptions writes flags as a manual does: --file FILE instead of --file="".
func asOptions(page string, cmd *cobra.Command) string {
	return optionHead.ReplaceAllStringFunc(page, func(head string) string {
		m := optionHead.FindStringSubmatch(head)
		name, _ := pflag.UnquoteUsage(cmd.Flag(m[2]))
		if name != "" {
			m[1] += ` \fI` + name + `\fP`
		}
		return ".TP\n" + m[1] + "\n"
	})
}
