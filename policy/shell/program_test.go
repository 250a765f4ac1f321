package shell

import (
	"strings"
	"testing"
)

// TestProgramsAreRead checks that each part of programs.txt has rows, that the code can parse each row, and that no
// name occurs twice in a part.
func TestProgramsAreRead(t *testing.T) {
	read := map[string]func(name string) bool{
		"textPrograms": nil, "diskTools": nil, "changing": nil, "privileges": nil, "commandOptions": nil,
		"commandWords": nil, "rehearsals": nil,
		"programVars": nil, "codeVars": nil, "harmlessPrograms": nil, "gitPrograms": nil, "packageKeys": nil,
		"narrowing": nil, "hooks": nil, "builtins": nil, "plainOptions": nil, "numbers": nil, "numberFilters": nil,
		"gitReaders": nil, "variablePrinters": nil, "local": nil, "silent": nil, "specialBuiltins": nil,
		"messengers": nil, "messageOptions": nil, "sayers": nil, "searchers": nil, "talkers": nil, "copiers": nil, "gitCommands": nil, "sshOptions": nil,
		"programs": func(name string) bool { _, ok := everyday(name); return ok },
		"terminals": func(name string) bool {
			return rows()["terminals"][name] == "" || matchesPhrase("terminals", name, phraseOf("terminals", name))
		},
		"reaches": func(name string) bool {
			return rows()["reaches"][name] == "" || matchesPhrase("reaches", name, phraseOf("reaches", name))
		},
		"installs": func(name string) bool {
			return rows()["installs"][name] == "" || matchesPhrase("installs", name, phraseOf("installs", name))
		},
		"outside": func(name string) bool {
			return rows()["outside"][name] == "" || matchesPhrase("outside", name, phraseOf("outside", name))
		},
		"connects": func(name string) bool {
			return rows()["connects"][name] == "" || matchesPhrase("connects", name, phraseOf("connects", name))
		},
		"secrets": func(name string) bool {
			return rows()["secrets"][name] == "" || matchesPhrase("secrets", name, phraseOf("secrets", name))
		},
		"wrappers":  func(name string) bool { _, ok := wrappers(name); return ok },
		"tools":     func(name string) bool { _, ok := tools(name); return ok },
		"settings":  func(name string) bool { _, ok := settings(name); return ok },
		"fetchers":  func(name string) bool { _, ok := fetchers(name); return ok },
		"senders":   func(name string) bool { _, ok := senders(name); return ok },
		"runners":   func(name string) bool { _, ok := runners(name); return ok },
		"uploads":   func(name string) bool { _, ok := uploads(name); return ok },
		"losses":    func(name string) bool { _, ok := losses(name); return ok },
		"clients":   func(name string) bool { _, ok := clients(name); return ok },
		"gitLosses": func(name string) bool { _, ok := gitLosses(name); return ok },
		"codeWords": func(name string) bool { _, ok := codeWords(name); return ok },
		"gitTexts":  func(name string) bool { _, ok := gitTexts(name); return ok },
	}
	for title, f := range read {
		if len(rows()[title]) == 0 {
			t.Errorf("the part %q is empty", title)
		}
		for name := range rows()[title] {
			if f != nil && !f(name) || !listed(title, name) {
				t.Errorf("%s: %q is not found", title, name)
			}
		}
	}
	title, seen := "", map[string]bool{}
	for line := range strings.Lines(programs) {
		names, _, row := strings.Cut(line, " =")
		switch _, known := read[title]; {
		case strings.HasPrefix(line, "== "):
			title = strings.TrimSpace(line[3:])
		case line[0] == '#' || line == "\n":
		case !known, !row && read[title] != nil:
			t.Errorf("%s: no code reads the row %q", title, line)
		default:
			for name := range strings.FieldsSeq(names) {
				if seen[title+" "+name] {
					t.Errorf("%s: %q stands twice", title, name)
				}
				seen[title+" "+name] = true
			}
		}
	}
}

// phraseOf returns the words of a command that matches the first phrase in the row of a program.
func phraseOf(part, name string) []field {
	first, _, _ := strings.Cut(rows()[part][name], ",")
	fs := []field{literal(name)}
	for word := range strings.FieldsSeq(first) {
		fs = append(fs, literal(strings.ReplaceAll(word, "*", "a")))
	}
	return fs
}
