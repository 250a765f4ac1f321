package config

import (
	"crypto/rand"
	"os"
	"path/filepath"
)

// What .gitignore holds. Without a configuration file the folder is Perlica's alone, and git shows
// nothing of it: one command must not change what `git status` says. With one, the folder is shared
// by way of git, and .gitignore, which keeps the record out of it for all, is shared with it.
const (
	ignoreAll    = "*\n!config.toml\n"
	ignoreRecord = "contexts/\nservice/\n"
)

// ensureIgnored writes .gitignore unless there is one, and lets git show the folder once there is a
// configuration file in it.
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
			return nil // it is a person's
		}
	}
	if err := replaceIn(root, name, wanted); err != nil {
		return w.refuse(name, err)
	}
	return nil
}

// replaceIn writes a file whole: git must never read half of it.
func replaceIn(root *os.Root, name, text string) error {
	next := name + "." + rand.Text()
	err := root.WriteFile(next, []byte(text), 0o600)
	if err == nil {
		err = root.Rename(next, name)
	}
	if err != nil {
		_ = root.Remove(next) // the error says what is wrong
	}
	return err
}

// showInGit is ensureIgnored behind the making of a configuration file.
func (w Workspace) showInGit() error {
	root, err := w.openRoot()
	if err != nil {
		return err
	}
	defer root.Close()
	return w.ensureIgnored(root)
}
