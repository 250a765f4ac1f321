// Package page holds the files of the browser's page. These are HTML, CSS and JavaScript modules in the folder assets.
// No build step changes them, and the page loads nothing from elsewhere.
//
// The first visit loads the modules that app.js imports. Further views are loaded at their first use: app.js lists them
// in later. Such a view may have words and styles of its own, in files with the name of its module.
//
// The page promises that an agent's words never become markup: it makes each element separately,
// with text nodes. It accepts a yes to a question only after the whole command was on the screen.
// It keeps a key that no script can read. It shows an answer as given only when Perlica has
// recorded it.
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

// Files returns the page's files for fs.ReadFile. A browser opens index.html first. Modules and style sheets come
// without comments, indents and needless line ends, to send a phone as few bytes as possible.
func Files() fs.FS {
	sub, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return files{sub}
}

// files holds the files of a folder.
type files struct{ fs.FS }

// surplus holds the patterns of text that is not sent.
type surplus struct{ comment, indent, joined, remarks *regexp.Regexp }

var forms = sync.OnceValue(func() surplus {
	return surplus{
		comment: regexp.MustCompile(`(?m)(?:^|[ \t]+)//(?: .*)?$`),
		indent:  regexp.MustCompile(`(?m)^[ \t]+|\n+$`),
		joined:  regexp.MustCompile(`([;{,(\[])\n+`),
		remarks: regexp.MustCompile(`(?s)/\*.*?\*/`),
	}
})

// ReadFile returns a file in the form in which it is sent.
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
