package process

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
)

func init() {
	testChildren["secret-print"] = func(args []string) { fmt.Print(strings.Join(args, "\n")) }
	testChildren["secret-fail"] = func(args []string) {
		fmt.Print(args[0])
		os.Exit(3)
	}
}

// TestSecret checks that the secret is the only line of a program's output, and no error contains a word of the output.
func TestSecret(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	for _, c := range []struct {
		child string
		args  []string
		ctx   context.Context
		want  string
		why   string
	}{
		{child: "secret-print", args: []string{" sk-1 ", ""}, want: "sk-1"},
		{child: "secret-print", args: []string{"sk-1", "sk-2"}, why: "something other than one key"},
		{child: "secret-print", args: []string{"sk-1 expires"}, why: "something other than one key"},
		{child: "secret-print", args: []string{"sk-1\x1b[0m"}, why: "something other than one key"},
		{child: "secret-print", args: []string{"sk-1" + strings.Repeat("x", maxSecret)}, why: "something other than one key"},
		{child: "secret-print", why: "printed nothing"},
		{child: "secret-fail", args: []string{"sk-1"}, why: "exit status 3"},
		{child: "secret-print", args: []string{"sk-1"}, ctx: ended, why: "did not end within"},
	} {
		t.Setenv(testChild, c.child)
		if c.ctx == nil {
			c.ctx = t.Context()
		}
		got, err := Secret(c.ctx, append([]string{os.Args[0]}, c.args...))
		switch {
		case c.why == "" && (err != nil || got != c.want):
			t.Errorf("%s %q: %q, %v", c.child, c.args, got, err)
		case c.why != "" && (err == nil || got != "" || !strings.Contains(err.Error(), c.why) ||
			strings.Contains(err.Error(), "sk-1")):
			t.Errorf("%s %.20q: %q, %v", c.child, c.args, got, err)
		}
	}
	if _, err := Secret(t.Context(), []string{"no-such-program-here"}); err == nil ||
		!strings.Contains(err.Error(), "no such command on PATH") {
		t.Errorf(`got %v; want err != nil && strings.Contains(err.Error(), "no such command on PATH")`, err)
	}
}
