// Package origin has the commands "changes" and "blame". They name the run that changed a file, and the approver.
package origin

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/origin"
	"github.com/perlica/perlica/kernel/project"
)

// app is one invocation of perlica. Its methods are the commands of this package.
type app struct{ *frame.App }

// reading opens the context's log and its view of the changes, and calls f with both.
func (a *app) reading(ctx context.Context,
	f func(view *origin.View, log *store.Reader, p *project.Project) error) error {
	return a.Reading(ctx, func(log *store.Reader, p *project.Project) (err error) {
		paths, err := p.Workspace.Context(p.Config.ContextID)
		if err != nil {
			return err
		}
		progress, done := a.Progress(ctx, "looking for changes", log)
		view, remove, err := project.OpenView(paths.Changes, func(path string) (*origin.View, error) {
			return origin.Open(ctx, log, path, p.Dirs.ViewKey(), func(seq event.Seq) { progress(int64(seq)) })
		})
		done()
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, view.Close()); remove() }()
		return f(view, log, p)
	})
}

// pathsOf returns the absolute path of an argument, and also the path with resolved symbolic links if it differs.
func pathsOf(p *project.Project, arg string) []string {
	path := filepath.Clean(arg)
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.Dir, path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		return []string{path, real}
	}
	return []string{path}
}

// shortTime is the format of a local time in a list.
const shortTime = "2006-01-02 15:04 MST"

// allowedBy returns the name of the person that allowed a change, or the kind of the decision, such as "rule".
func allowedBy(d origin.Decision) string {
	switch {
	case d.Unasked():
		return strings.ToUpper(d.Kind)
	case d.Who != "":
		return d.Who
	}
	return d.Kind
}
