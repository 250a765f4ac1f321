package perlica_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// TestJSON compares the values that commands print as JSON with docs/json.txt. Each change of a value is then visible
// in the diff of this file.
func TestJSON(t *testing.T) {
	lines := []string{"# The JSON that commands print, by the folder of the command. Written by: go test . -update"}
	for _, p := range commandPackages(t) {
		var values []string
		for _, v := range p.printed() {
			values = append(values, strings.Join(v, "\n"))
		}
		slices.Sort(values)
		for _, v := range slices.Compact(values) {
			lines = append(lines, "", strings.TrimPrefix(p.dir, "cmd/perlica/"), v)
		}
	}
	compareFile(t, filepath.Join("docs", "json.txt"), strings.Join(lines, "\n")+"\n")
}

// commands is a package of commands with its types.
type commands struct {
	dir   string
	files []*ast.File
	info  types.Info
}

// commandPackages returns the packages below cmd/perlica in the order of their names.
func commandPackages(t *testing.T) (list []*commands) {
	t.Helper()
	out, err := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,GoFiles",
		"./cmd/perlica/...").Output()
	if err != nil {
		t.Fatal(err, errors.Unwrap(err))
	}
	exports, fset := map[string]string{}, token.NewFileSet()
	lookup := func(name string) (io.ReadCloser, error) { return os.Open(exports[name]) }
	config := types.Config{Importer: importer.ForCompiler(fset, "gc", lookup)}
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var l struct {
			ImportPath, Export string
			GoFiles            []string
		}
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[l.ImportPath] = l.Export
		dir := strings.TrimPrefix(l.ImportPath, module+"/")
		if !strings.HasPrefix(dir, "cmd/perlica") {
			continue
		}
		p := &commands{dir: dir, info: types.Info{Types: map[ast.Expr]types.TypeAndValue{}}}
		for _, name := range l.GoFiles {
			f, err := parser.ParseFile(fset, path.Join(dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			p.files = append(p.files, f)
		}
		if _, err := config.Check(l.ImportPath, fset, p.files, &p.info); err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *commands) int { return strings.Compare(a.dir, b.dir) })
	return list
}

// printers are the functions that print a value as JSON, each with the position of the value among its arguments.
var printers = map[string]int{"PrintJSON": 0, "Show": 1, "printJSON": 0, "Encode": 0}

// printed returns the members of each value that the package prints as JSON.
func (p *commands) printed() (values [][]string) {
	for _, f := range p.files {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			at, ok := printers[fun.Sel.Name]
			if !ok || at >= len(call.Args) ||
				fun.Sel.Name == "Encode" && types.TypeString(p.info.Types[fun.X].Type, nil) != "*encoding/json.Encoder" {
				return true
			}
			value := p.info.Types[call.Args[at]].Type
			if _, open := value.Underlying().(*types.Interface); !open {
				values = append(values, members("\t", value, nil))
			}
			return true
		})
	}
	return values
}

// members returns a line for each member of a JSON value. The parameter "name" is the path of the value. The
// parameter "above" has the types that contain the value.
func members(name string, t types.Type, above []types.Type) (lines []string) {
	if slices.ContainsFunc(above, func(a types.Type) bool { return types.Identical(a, t) }) {
		return []string{name + " as above"}
	}
	if own := marshaler(t); own != "" {
		return []string{name + " " + own}
	}
	switch u := t.Underlying().(type) {
	case *types.Pointer:
		return members(name, u.Elem(), above)
	case *types.Slice:
		if types.Identical(u.Elem(), types.Typ[types.Byte]) {
			return []string{name + " base64"}
		}
		return members(name+"[]", u.Elem(), above)
	case *types.Array:
		return members(name+"[]", u.Elem(), above)
	case *types.Map:
		return members(name+"{}", u.Elem(), above)
	case *types.Interface:
		return []string{name + " any"}
	case *types.Basic:
		return []string{name + " " + kind(u)}
	case *types.Struct:
		return structMembers(name, u, append(slices.Clone(above), t))
	}
	return []string{fmt.Sprintf("%s %v", name, t)}
}

func structMembers(name string, s *types.Struct, above []types.Type) (lines []string) {
	for i := range s.NumFields() {
		field := s.Field(i)
		tag, options, _ := strings.Cut(reflect.StructTag(s.Tag(i)).Get("json"), ",")
		switch {
		case tag == "-" || !field.Exported() && !field.Embedded():
			continue
		case field.Embedded() && tag == "":
			lines = append(lines, members(name, field.Type(), above)...)
			continue
		case tag == "":
			tag = field.Name()
		}
		separator := "."
		if name == "\t" {
			separator = ""
		}
		if strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero") {
			tag += "?"
		}
		lines = append(lines, members(name+separator+tag, field.Type(), above)...)
	}
	return lines
}

// marshaler returns the name of a type that writes its own JSON or text.
func marshaler(t types.Type) string {
	for _, method := range []string{"MarshalJSON", "MarshalText"} {
		if o, _, _ := types.LookupFieldOrMethod(t, true, nil, method); o != nil {
			return strings.TrimPrefix(types.TypeString(t, func(p *types.Package) string { return p.Name() }), "*")
		}
	}
	return ""
}

func kind(b *types.Basic) string {
	switch {
	case b.Info()&types.IsNumeric != 0:
		return "number"
	case b.Info()&types.IsBoolean != 0:
		return "boolean"
	}
	return b.String()
}
