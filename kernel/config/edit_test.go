package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSet(t *testing.T) {
	for _, tt := range []struct{ name, before, key, value, after string }{
		{"empty file", "", "model.default_provider", "claude", "[model]\ndefault_provider = \"claude\"\n"},
		{"replace", "# top\n[model] # here\ndefault_provider  =  'old'   # why\n\n[other]\nx=1\n", "model.default_provider",
			"new", "# top\n[model] # here\ndefault_provider  =  \"new\"   # why\n\n[other]\nx=1\n"},
		{"replace a list", "[log]\nstream_sync = [ # c\n 1,\n] # d\n", "log.stream_sync", "true",
			"[log]\nstream_sync = true # d\n"},
		{"replace a long string", "[model]\ndefault_provider = \"\"\"\na\nb\"\"\"\nx = 1", "model.default_provider", "c",
			"[model]\ndefault_provider = \"c\"\nx = 1"},
		{"dotted", "model.default_provider='old'", "model.default_provider", "new", "model.default_provider=\"new\""},
		{"quoted", "[ \"model\" ]\n'default_provider' = 'old'\n", "model.default_provider", "new",
			"[ \"model\" ]\n'default_provider' = \"new\"\n"},
		{"inline", "model = { a = 1, default_provider = 'old' } # c\n", "model.default_provider", "new",
			"model = { a = 1, default_provider = \"new\" } # c\n"},
		{"inline, missing", "model = { a = 1 } # c\n", "model.default_provider", "new",
			"model = { a = 1, default_provider = \"new\" } # c\n"},
		{"inline, empty", "model = {}\n", "model.default_provider", "new", "model = { default_provider = \"new\" }\n"},
		{"inline in a table", "[providers]\nx = { acp = { mode = 'a' } }\n", "providers.x.acp.connect_timeout", "5s",
			"[providers]\nx = { acp = { mode = 'a', connect_timeout = \"5s\" } }\n"},
		{"inline, section missing", "[providers]\nx = { enabled = true }\n", "providers.x.acp.mode", "a",
			"[providers]\nx = { enabled = true, acp.mode = \"a\" }\n"},
		{"CRLF", "[model]\r\nx = 1\r\n\r\n[b]\r\ny = 2\r\n", "model.default_provider", "new",
			"[model]\r\nx = 1\r\ndefault_provider = \"new\"\r\n\r\n[b]\r\ny = 2\r\n"},
		{"CRLF, new table", "a = 1\r\n", "log.stream_sync", "0", "a = 1\r\n\r\n[log]\r\nstream_sync = false\r\n"},
		{"no newline at the end", "[model]\nx = 1", "model.default_provider", "new",
			"[model]\nx = 1\ndefault_provider = \"new\""},
		{"no newline, new table", "[model]\nx = 1", "log.stream_sync", "1", "[model]\nx = 1\n\n[log]\nstream_sync = true\n"},
		{"empty table", "[model]\n\n[b]\n", "model.default_provider", "new", "[model]\ndefault_provider = \"new\"\n\n[b]\n"},
		{"empty table, comment", "[model] # c", "model.default_provider", "new", "[model] # c\ndefault_provider = \"new\""},
		{"only in comments", "# [model]\n# default_provider = 'x'\n", "model.default_provider", "new",
			"# [model]\n# default_provider = 'x'\n\n[model]\ndefault_provider = \"new\"\n"},
		{"in a string", "a = '''\n[model]\ndefault_provider = 1\n'''\n", "model.default_provider", "new",
			"a = '''\n[model]\ndefault_provider = 1\n'''\n\n[model]\ndefault_provider = \"new\"\n"},
		{"indented", "[model]\n  x = 1\n", "model.default_provider", "new",
			"[model]\n  x = 1\n  default_provider = \"new\"\n"},
		{"sibling is dotted", "providers.x.acp.mode = 'a'\n\n[log]\n", "providers.x.acp.connect_timeout", "5s",
			"providers.x.acp.mode = 'a'\nproviders.x.acp.connect_timeout = \"5s\"\n\n[log]\n"},
		{"sibling is dotted in a table", "[providers]\nx.acp.mode = 'a'\n[log]\n", "providers.x.enabled", "true",
			"[providers]\nx.acp.mode = 'a'\nx.enabled = true\n[log]\n"},
		{"parent table", "[providers.x]\nenabled = true\n", "providers.x.acp.mode", "a",
			"[providers.x]\nenabled = true\n\n[providers.x.acp]\nmode = \"a\"\n"},
		{"child table", "[providers.x.acp]\nmode = 'a'\n", "providers.x.enabled", "true",
			"[providers.x.acp]\nmode = 'a'\n\n[providers.x]\nenabled = true\n"},
		{"dotted and a table", "providers.y.enabled = true\n[providers.x]\n", "providers.x.enabled", "false",
			"providers.y.enabled = true\n[providers.x]\nenabled = false\n"},
		{"before lists", "[log]\nstream_sync = true\n[[policy.rule]]\neffect = 'deny'\n", "context.default_id", "c",
			"[log]\nstream_sync = true\n[[policy.rule]]\neffect = 'deny'\n\n[context]\ndefault_id = \"c\"\n"},
		{"same name in another table", "[a]\ndefault_provider = 1\n[model]\nx = 1\n[c]\ndefault_provider = 2\n",
			"model.default_provider", "new",
			"[a]\ndefault_provider = 1\n[model]\nx = 1\ndefault_provider = \"new\"\n[c]\ndefault_provider = 2\n"},
		{"byte order mark", "\xef\xbb\xbf[model]\ndefault_provider = 'x'\n", "model.default_provider", "new",
			"\xef\xbb\xbf[model]\ndefault_provider = \"new\"\n"},
		{"unknown sections stay", "[future]\nkey = 2026-01-01\n[model]\ndefault_provider = 'x'\n", "model.default_provider",
			"new", "[future]\nkey = 2026-01-01\n[model]\ndefault_provider = \"new\"\n"},
		{"number", "[runtime]\ncontext_budget_ratio = 1 # c\n", "runtime.context_budget_ratio", "0.5",
			"[runtime]\ncontext_budget_ratio = 0.5 # c\n"},
		{"window", "", "runtime.provider_context_windows.claude", "5", "[runtime.provider_context_windows]\nclaude = 5\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "config.toml")
			if err := os.WriteFile(file, []byte(tt.before), 0o640); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the second call changes nothing
				if err := Set(file, tt.key, tt.value); err != nil {
					t.Fatal(err)
				}
				if got, _ := os.ReadFile(file); string(got) != tt.after {
					t.Errorf("got\n%q\nwant\n%q", got, tt.after)
				}
			}
			if info, _ := os.Stat(file); info.Mode().Perm() != 0o640 {
				t.Errorf("the mode is %v", info.Mode())
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

func TestSetRefuses(t *testing.T) {
	for _, tt := range []struct{ name, before, key, value, want string }{
		{"unknown key", "", "model.default_providr", "x",
			`model.default_providr: is not a key that can be set; did you mean "default_provider"?`},
		{"list", "", "providers.x.adapter.args", "x", "providers.x.adapter.args: is not a key that can be set"},
		{"element", "", "mcp.servers[].name", "x", "mcp.servers[].name: is not a key that can be set"},
		{"empty", "", "", "x", "is not a key that can be set"},
		{"value", "", "log.stream_sync", "x", "log.stream_sync: must be true or false"},
		{"syntax", "a = ", "log.stream_sync", "1", "1:"},
		{"something else there", "model = 1\n", "model.default_provider", "x",
			"1: model.default_provider: cannot be set without rewriting the file; set it by hand"},
		{"table there", "[model.default_provider]\n", "model.default_provider", "x",
			"1: model.default_provider: cannot be set without rewriting the file; set it by hand"},
		{"list there", "[[model]]\n", "model.default_provider", "x",
			"1: model.default_provider: cannot be set without rewriting the file; set it by hand"},
	} {
		file := filepath.Join(t.TempDir(), "config.toml")
		if err := os.WriteFile(file, []byte(tt.before), 0o600); err != nil {
			t.Fatal(err)
		}
		err := Set(file, tt.key, tt.value)
		var ps Problems
		if !errors.As(err, &ps) || !strings.Contains(strings.TrimPrefix(err.Error(), file+":"), tt.want) {
			t.Errorf("%s: got %v", tt.name, err)
		}
		if data, _ := os.ReadFile(file); string(data) != tt.before {
			t.Errorf("%s: the file is changed", tt.name)
		}
	}
}

func TestSetMakesTheFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "perlica", "config.toml")
	if err := Set(file, "model.default_provider", "claude"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v %v; want err == nil && info.Mode().Perm() == 0o600", info, err)
	}
}

func TestSetThroughALink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "dotfiles.toml"), filepath.Join(dir, "config.toml")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Symlink(file, link)); err != nil {
		t.Skip(err)
	}
	if err := Set(link, "model.default_provider", "claude"); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Lstat(link); info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is replaced")
	}
	if data, _ := os.ReadFile(file); len(data) == 0 {
		t.Error("nothing is written")
	}
}

func TestSetWhatCannotBeRead(t *testing.T) {
	dir := t.TempDir()
	if err := Set(dir, "model.default_provider", "x"); !errors.Is(err, errIrregular) {
		t.Errorf("got %v", err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Set(filepath.Join(file, "config.toml"), "model.default_provider", "x"); err == nil {
		t.Error("no error")
	}
}
