// Package page is what a browser is shown: HTML, CSS and JavaScript modules, as they are, in this
// folder's assets. There is no step that builds them and nothing comes from elsewhere.
//
// The page promises that no word of an agent becomes markup: elements are made one by one, with text
// nodes. It takes a yes to a question only when all that says what would run was on the screen, keeps a
// key that no script can read, and shows an answer as given only when Perlica has it on record.
package page

import (
	"embed"
	"io/fs"
)

//go:embed assets
var assets embed.FS

// Files are the page's files; index.html is where it begins.
func Files() fs.FS {
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return files
}
