package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// TrustVariable is the variable of the environment that trusts the project, for CI.
const TrustVariable = trustVariable

// TrustLogVariable is the variable that holds the verifier keys of logs that are trusted.
const TrustLogVariable = "PERLICA_TRUST_LOG"

// Check looks at what Ensure would make or refuse, and changes nothing. The error is
// Ensure's *WorkspaceError or *ContextNameError; open lists what others than the owner
// can enter or read below contexts. A workspace that is not there yet is in order.
func (w Workspace) Check(name string) (open []string, err error) {
	paths, err := w.Context(name)
	if err != nil {
		return nil, err
	}
	root, err := w.openRoot()
	if err != nil {
		return nil, err
	}
	defer root.Close()
	for _, path := range []string{w.Dir(), filepath.Dir(paths.Dir), paths.Dir, paths.Logs, paths.Locks} {
		rel, err := filepath.Rel(w.Root, path)
		if err != nil {
			return open, &WorkspaceError{Path: path, Reason: err.Error(), Err: err}
		}
		shared, err := checkDir(root, rel, path != w.Dir())
		switch {
		case errors.Is(err, fs.ErrNotExist), path == paths.Logs && err != nil && !errors.Is(err, errLink):
			continue
		case err != nil:
			return open, w.refuse(rel, err)
		}
		for _, name := range shared {
			open = append(open, filepath.Join(w.Root, name))
		}
	}
	return open, nil
}

// checkDir looks at one directory of a workspace and, if it is private, at the files in
// it. It returns what others can get at.
func checkDir(root *os.Root, dir string, private bool) (shared []string, err error) {
	info, err := root.Lstat(dir)
	if err == nil && !private {
		info, err = root.Stat(dir)
	}
	switch {
	case err != nil:
		return nil, err
	case info.Mode()&fs.ModeSymlink != 0:
		return nil, errLink
	case !info.IsDir():
		return nil, errNoDir
	case !private:
		return nil, nil
	}
	if isShared(info) {
		shared = append(shared, dir)
	}
	if filepath.Base(dir) == "contexts" {
		return shared, nil // Ensure allows links among the other contexts
	}
	if err := refuseLinks(root, dir); err != nil {
		return shared, err
	}
	entries, err := fs.ReadDir(root.FS(), filepath.ToSlash(dir))
	if err != nil {
		return shared, err
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && info.Mode().IsRegular() && isShared(info) {
			shared = append(shared, filepath.Join(dir, e.Name()))
		}
	}
	return shared, nil
}

func isShared(info fs.FileInfo) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0
}
