package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/scanner"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

const module = "github.com/perlica/perlica/"

// aids are the folders outside the product: programs that measure.
var aids = []string{"cmd/bench", "cmd/bench/bare", "cmd/measure"}

// tree is the parsed source code below a folder.
type tree struct {
	dir     string
	fset    *token.FileSet
	product []*pack          // sorted by path; built for this system
	all     map[string]*file // every Go file by name, for every system
	exports map[string]string
}

// pack is a package of the product.
type pack struct {
	path    string
	files   []*file
	imports []string // imports of our own packages
	info    types.Info
}

// file is a Go file.
type file struct {
	name    string
	test    bool // A test file, or a file that serves only tests.
	ast     *ast.File
	code    int   // number of lines that are neither blank nor a comment
	columns []int // width of each line; a tab counts as one
}

// listed is a part of the output of go list.
type listed struct {
	ImportPath, Export string
	GoFiles, Imports   []string
}

// load reads and type-checks the tree. The compiler's export data provides the imports.
func load(dir string) (*tree, error) {
	t := &tree{dir: dir, fset: token.NewFileSet(), all: map[string]*file{}, exports: map[string]string{}}
	if err := t.parse(); err != nil {
		return nil, err
	}
	list := exec.Command("go", "list", "-export", "-deps", "-json=ImportPath,Export,GoFiles,Imports", "./...")
	list.Dir, list.Stderr = dir, os.Stderr
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		t.exports[l.ImportPath] = l.Export
		if ours, ok := strings.CutPrefix(l.ImportPath, module); ok && !aid(ours) {
			t.product = append(t.product, t.pack(ours, l))
		}
	}
	slices.SortFunc(t.product, func(a, b *pack) int { return strings.Compare(a.path, b.path) })
	return t, t.check()
}

// aid reports whether a folder serves only tests and measurements.
func aid(dir string) bool {
	return slices.Contains(aids, dir) || strings.HasSuffix(path.Base(dir), "test")
}

func (t *tree) pack(ours string, l listed) *pack {
	p := &pack{path: ours}
	for _, name := range l.GoFiles {
		p.files = append(p.files, t.all[path.Join(ours, name)])
	}
	for _, i := range l.Imports {
		if i, ok := strings.CutPrefix(i, module); ok {
			p.imports = append(p.imports, i)
		}
	}
	return p
}

func (t *tree) parse() error {
	return fs.WalkDir(os.DirFS(t.dir), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "dist"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" || strings.HasPrefix(d.Name(), "."):
			return nil
		}
		text, err := os.ReadFile(filepath.Join(t.dir, name))
		if err != nil {
			return err
		}
		f := &file{name: name, test: strings.HasSuffix(name, "_test.go") || aid(path.Dir(name))}
		f.ast, err = parser.ParseFile(t.fset, name, text, parser.SkipObjectResolution)
		f.code = codeLines(text)
		for line := range bytes.Lines(text) {
			f.columns = append(f.columns, utf8.RuneCount(bytes.TrimRight(line, "\r\n")))
		}
		t.all[name] = f
		return err
	})
}

// codeLines counts the lines that contain a token of Go, which a comment is not.
func codeLines(text []byte) (n int) {
	file := token.NewFileSet().AddFile("", -1, len(text))
	var s scanner.Scanner
	s.Init(file, text, nil, 0)
	last := 0
	for {
		pos, tok, literal := s.Scan()
		if tok == token.EOF {
			return n
		}
		if tok == token.SEMICOLON && literal == "\n" {
			continue
		}
		first := file.Line(pos)
		end := first + strings.Count(literal, "\n")
		n += end - max(first, last+1) + 1
		last = max(last, end)
	}
}

func (t *tree) check() error {
	lookup := func(p string) (io.ReadCloser, error) { return os.Open(t.exports[p]) }
	config := types.Config{Importer: importer.ForCompiler(t.fset, "gc", lookup)}
	for _, p := range t.product {
		p.info = types.Info{Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{}}
		files := make([]*ast.File, 0, len(p.files))
		for _, f := range p.files {
			files = append(files, f.ast)
		}
		if _, err := config.Check(module+p.path, t.fset, files, &p.info); err != nil {
			return err
		}
	}
	return nil
}

// imports counts the imports between packages of the product and finds the longest chain of imports. floors is the
// length of this chain.
func (t *tree) imports() (edges, floors int, chain []string) {
	byPath, longest := map[string]*pack{}, map[string][]string{}
	for _, p := range t.product {
		byPath[p.path] = p
		edges += len(p.imports)
	}
	var down func(p *pack) []string
	down = func(p *pack) []string {
		if known, ok := longest[p.path]; ok {
			return known
		}
		var below []string
		for _, i := range p.imports {
			if c := down(byPath[i]); len(c) > len(below) {
				below = c
			}
		}
		longest[p.path] = append([]string{p.path}, below...)
		return longest[p.path]
	}
	for _, p := range t.product {
		if c := down(p); len(c) > len(chain) {
			chain = c
		}
	}
	return edges, len(chain), chain
}

// usedOnce counts the functions and methods of the product. The result "once" is the number of unexported functions
// that the product mentions exactly once. The result "short" is the number of these functions with at most five
// lines.
func (t *tree) usedOnce() (functions, once, short int) {
	for _, p := range t.product {
		uses := map[types.Object]int{}
		for _, o := range p.info.Uses {
			if f, ok := o.(*types.Func); ok {
				uses[f.Origin()]++
			}
		}
		for _, f := range p.files {
			for _, d := range f.ast.Decls {
				d, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				functions++
				if d.Name.IsExported() || uses[p.info.Defs[d.Name]] != 1 {
					continue
				}
				once++
				if t.fset.Position(d.End()).Line-t.fset.Position(d.Pos()).Line < 5 {
					short++
				}
			}
		}
	}
	return functions, once, short
}

// exported counts the exported names of the product. It lists the names that no other package mentions and that
// docs/api.txt does not promise.
func (t *tree) exported() (count int, unused []string) {
	used := t.mentioned()
	for _, name := range t.promised() {
		used[name] = true
	}
	for _, p := range t.product {
		names := map[string]bool{}
		for _, f := range t.all {
			if path.Dir(f.name) == p.path && !f.test && f.ast.Name.Name != "main" {
				declared(f.ast, func(name string) { names[name] = true })
			}
		}
		count += len(names)
		for name := range names {
			if !used[p.path+"."+name] {
				unused = append(unused, p.path+"."+name)
			}
		}
	}
	slices.Sort(unused)
	return count, unused
}

// declared yields the exported names that a file declares at package level.
func declared(f *ast.File, yield func(string)) {
	add := func(id *ast.Ident) {
		if id.IsExported() {
			yield(id.Name)
		}
	}
	for _, d := range f.Decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				add(d.Name)
			}
		case *ast.GenDecl:
			for _, s := range d.Specs {
				switch s := s.(type) {
				case *ast.TypeSpec:
					add(s.Name)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						add(id)
					}
				}
			}
		}
	}
}

// mentioned returns "folder.Name" for each name of this module that a file of another folder mentions.
func (t *tree) mentioned() map[string]bool {
	used := map[string]bool{}
	for _, f := range t.all {
		names := map[string]string{}
		for _, spec := range f.ast.Imports {
			p, _ := strconv.Unquote(spec.Path.Value)
			ours, ok := strings.CutPrefix(p, module)
			if !ok || ours == path.Dir(f.name) {
				continue
			}
			name := path.Base(ours)
			if spec.Name != nil {
				name = spec.Name.Name
			}
			names[name] = ours
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if id, ok := s.X.(*ast.Ident); ok && names[id.Name] != "" {
					used[names[id.Name]+"."+s.Sel.Name] = true
				}
			}
			return true
		})
	}
	return used
}

// promised returns the package-level names in docs/api.txt.
func (t *tree) promised() (names []string) {
	text, err := os.ReadFile(filepath.Join(t.dir, "docs", "api.txt"))
	if err != nil {
		return nil
	}
	folder := ""
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 1:
			folder = words[0]
		case len(words) == 2 && line[0] == '\t':
			names = append(names, folder+"."+words[1])
		}
	}
	return names
}
