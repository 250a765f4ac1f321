package config

import (
	"crypto/rand"
	"os"
	"path/filepath"
)

// .gitignore has one of these contents. Without a configuration file only Perlica uses the folder, and git shows
// nothing of it: no command may change the output of `git status`. With a configuration file the team shares the
// folder through git. Then git shares .gitignore too, and it keeps the record out of every clone.
const (
	ignoreAll    = "*\n!config.toml\n"
	ignoreRecord = "contexts/\nservice/\n"
)

// ensureIgnored writes .gitignore unless it exists. It lets git show the folder as soon as the folder has a
// configuration file.
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
			return nil // a person wrote it
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
		_ = root.Remove(next) // err names the fault
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
