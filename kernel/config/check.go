package config

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// TrustVariable is the name of the environment variable that trusts the project in CI.
const TrustVariable = trustVariable

// TrustLogVariable is the name of the environment variable with the verifier keys of trusted logs.
const TrustLogVariable = "PERLICA_TRUST_LOG"

// Check finds the errors that Ensure would return, and changes nothing. The error has the type *WorkspaceError or
// *ContextNameError. The result "open" lists the paths in the contexts folder that other users can enter or read. A
// workspace that does not exist yet is valid.
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
			return open, w.refusePath(rel, err)
		}
		for _, name := range shared {
			open = append(open, filepath.Join(w.Root, name))
		}
	}
	return open, nil
}

// checkDir checks one directory of a workspace. If private is true, it also checks the directory's files. It returns
// the paths that other users can reach.
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
		return shared, nil // Ensure allows links in the folders of other contexts
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
