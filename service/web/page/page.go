// Package page is what a browser is shown: HTML, CSS and JavaScript modules, as they are, in this
// folder's assets. There is no step that builds them and nothing comes from elsewhere.
//
// The page promises that no word of an agent becomes markup: elements are made one by one, with text
// nodes. It takes a yes to a question only when all that says what would run was on the screen, keeps a
// key that no script can read, and shows an answer as given only when Perlica has it on record.
package page

import (
	"bytes"
	"embed"
	"encoding/json"
	"io/fs"
	"path"
	"regexp"
	"sync"
)

//go:embed assets
var assets embed.FS

// Files are the page's files, to be read with fs.ReadFile; index.html is where it begins. Modules
// and style sheets come without comments, indents and needless line ends: a phone is sent as little as possible.
func Files() fs.FS {
	sub, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return files{sub}
}

// files are those of a folder.
type files struct{ fs.FS }

// surplus holds the forms of the text that is not sent.
type surplus struct{ comment, indent, joined, remarks *regexp.Regexp }

var forms = sync.OnceValue(func() surplus {
	return surplus{
		comment: regexp.MustCompile(`(?m)(?:^|[ \t]+)//(?: .*)?$`),
		indent:  regexp.MustCompile(`(?m)^[ \t]+|\n+$`),
		joined:  regexp.MustCompile(`([;{,(\[])\n+`),
		remarks: regexp.MustCompile(`(?s)/\*.*?\*/`),
	}
})

// ReadFile reads a file in the form in which it is sent.
func (dir files) ReadFile(name string) ([]byte, error) {
	data, err := fs.ReadFile(dir.FS, name)
	if err != nil {
		return nil, err
	}
	f := forms()
	switch path.Ext(name) {
	case ".js":
		return f.joined.ReplaceAll(f.indent.ReplaceAll(f.comment.ReplaceAll(data, nil), nil), []byte("$1")), nil
	case ".css":
		return f.joined.ReplaceAll(f.indent.ReplaceAll(f.remarks.ReplaceAll(data, nil), nil), []byte("$1")), nil
	case ".json":
		var compact bytes.Buffer
		err := json.Compact(&compact, data)
		return compact.Bytes(), err
	}
	return data, nil
}
