package config

import (
	"crypto/rand"
	"os"
	"path/filepath"
)

// .gitignore has one of these contents. Without a configuration file, git ignores the whole folder, because no command
// of Perlica may change the output of `git status`. With a configuration file, the team shares the folder through git.
// The second content still excludes the record from every clone.
const (
	ignoreAll    = "*\n!config.toml\n"
	ignoreRecord = "contexts/\nservice/\n"
)

// ensureIgnored writes .gitignore if it does not exist. If the folder has a configuration file, ensureIgnored replaces
// ignoreAll with ignoreRecord.
func (w Workspace) ensureIgnored(root *os.Root) error {
	name := filepath.Join(DirName, ".gitignore")
	wanted := ignoreAll
	if _, err := root.Lstat(filepath.Join(DirName, "config.toml")); err == nil {
		wanted = ignoreRecord
	}
	if _, err := root.Lstat(name); err == nil {
		if wanted == ignoreAll {
			return nil
		}
		if has, err := root.ReadFile(name); err != nil || string(has) != ignoreAll {
			return nil // a person wrote this file
		}
	}
	if err := replaceIn(root, name, wanted); err != nil {
		return w.refusePath(name, err)
	}
	return nil
}

// replaceIn replaces a file atomically, so that git never reads half of it.
func replaceIn(root *os.Root, name, text string) error {
	next := name + "." + rand.Text()
	err := root.WriteFile(next, []byte(text), 0o600)
	if err == nil {
		err = root.Rename(next, name)
	}
	if err != nil {
		_ = root.Remove(next) // the caller gets the first error, err
	}
	return err
}

// showInGit calls ensureIgnored after a configuration file was created.
func (w Workspace) showInGit() error {
	root, err := w.openRoot()
	if err != nil {
		return err
	}
	defer root.Close()
	return w.ensureIgnored(root)
}
