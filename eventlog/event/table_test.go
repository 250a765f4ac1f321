package event

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var updatePage = flag.Bool("update", false, "write the table of types into docs/log-format.md")

// columns maps each unique index to the column that it makes unique.
var columns = map[once]string{
	intentPerInput: "input_id", outcomePerRun: "run_id", answerPerQuestion: "interaction_id",
	resolutionPerQuestion: "interaction_id",
}

// uniqueIndexes returns the unique indexes that the table requires. For each name it returns the column and the
// sorted types.
func uniqueIndexes(table table) map[string]string {
	list := map[string]string{}
	for once, column := range columns {
		types := table.Where(func(r *Row) bool { return r.Once == once })
		slices.Sort(types)
		list[string(once)] = fmt.Sprint(column, types)
	}
	return list
}

// TestTheSchemaIsTheTables checks that the schema has exactly the unique indexes that the table requires. The bytes
// of the schema may not change.
func TestTheSchemaIsTheTables(t *testing.T) {
	text, err := os.ReadFile("../store/schema.sql")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]Type{}
	for _, m := range regexp.MustCompile(`\((\d+), '([^']+)'\)`).FindAllStringSubmatch(string(text), -1) {
		names[m[1]] = Type(m[2])
	}
	inSchema := map[string]string{}
	for _, m := range regexp.MustCompile(`CREATE UNIQUE INDEX (\w+) ON entries \((\w+)\)\s+WHERE ([^;]+);`).
		FindAllStringSubmatch(string(text), -1) {
		var types []Type
		for _, id := range regexp.MustCompile(`\d+`).FindAllString(m[3], -1) {
			types = append(types, names[id])
		}
		slices.Sort(types)
		inSchema[m[1]] = fmt.Sprint(m[2], types)
	}
	want := uniqueIndexes(known)
	if fmt.Sprint(inSchema) != fmt.Sprint(want) {
		t.Errorf("schema.sql has\n%v, the table\n%v", inSchema, want)
	}
	for _, r := range known {
		if r.Once != "" && columns[r.Once] == "" {
			t.Errorf("%s: there is no index %q", r.Type, r.Once)
		}
	}
}

// page returns the table of types as docs/log-format.md shows it.
func page(table table) string {
	var b strings.Builder
	b.WriteString("| type | class | when |\n|---|---|---|\n")
	for _, r := range table {
		class := string(r.Class)
		if r.Synced {
			class += ", synced"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", r.Type, class, r.About)
	}
	return b.String()
}

// TestFormatPageListsTheTypes keeps docs/log-format.md equal to the table.
func TestFormatPageListsTheTypes(t *testing.T) {
	const name = "../../docs/log-format.md"
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	whole := regexp.MustCompile(`(?m)^\| type \| class \| when \|\n(\|.*\n)*`)
	if !whole.Match(text) {
		t.Fatal("docs/log-format.md has no table of types")
	}
	want := string(whole.ReplaceAllLiteral(text, []byte(page(known))))
	if *updatePage {
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Error("docs/log-format.md: run go test ./eventlog/event -run TestFormatPageListsTheTypes -update")
	}
}

// declared returns the struct types of a folder of the repository.
func declared(t *testing.T, folder string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(folder), "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.TYPE {
				for _, s := range g.Specs {
					names[s.(*ast.TypeSpec).Name.Name] = true
				}
			}
		}
	}
	return names
}

// TestPayloads checks that the row of every fact names an existing struct, and that no row of a frame names one.
func TestPayloads(t *testing.T) {
	folders := map[string]map[string]bool{
		"fact": declared(t, "kernel/fact"), "kernel": declared(t, "kernel"), "interaction": declared(t, "interaction"),
		"policy": declared(t, "policy"), "event": declared(t, "eventlog/event"),
	}
	for _, r := range known {
		if r.Class == Frame {
			if r.Payload != "" {
				t.Errorf("%s: a frame's payload is its line", r.Type)
			}
			continue
		}
		pkg, name, _ := strings.Cut(r.Payload, ".")
		if r.Payload != "struct{}" && !folders[pkg][name] {
			t.Errorf("%s: there is no struct %s", r.Type, r.Payload)
		}
	}
}

// TestRows checks that the fields of each row are consistent.
func TestRows(t *testing.T) {
	seen := map[Type]bool{}
	for _, r := range known {
		switch {
		case seen[r.Type]:
			t.Errorf("%s has two rows", r.Type)
		case r.Class != Fact && r.Class != Frame:
			t.Errorf("%s: class %q", r.Type, r.Class)
		case r.Class == Frame && (r.Once != "" || r.Run != passes || r.Views != 0 || r.Kept):
			t.Errorf("%s: only facts mean anything", r.Type)
		case (r.Run == Ends) != (r.Once == outcomePerRun), (r.Run == Opens) != (r.Once == intentPerInput):
			t.Errorf("%s: an intent is once per input, an outcome once per run", r.Type)
		case r.About == "":
			t.Errorf("%s is not described", r.Type)
		}
		seen[r.Type] = true
	}
}

// TestAddingAType checks that a new row is enough to give the type its indexes, views and documentation.
func TestAddingAType(t *testing.T) {
	added := Row{Type: "test.added", Class: Fact, Once: answerPerQuestion, Kept: true, Views: Bridge,
		Payload: "fact.Added", About: "it was added"}
	table := append(Known(), added)
	if len(known) != len(table)-1 {
		t.Fatal("the table itself was changed")
	}
	for what, has := range map[string]bool{
		"the unique index": strings.Contains(uniqueIndexes(table)[string(answerPerQuestion)], "test.added"),
		"what is kept":     slices.Contains(table.Where(func(r *Row) bool { return r.Kept }), added.Type),
		"the view":         slices.Contains(table.Where(func(r *Row) bool { return r.Views&Bridge != 0 }), added.Type),
		"the documents":    strings.Contains(page(table), "| `test.added` | fact | it was added |\n"),
	} {
		if !has {
			t.Errorf("%s: the type is missing", what)
		}
	}
}
