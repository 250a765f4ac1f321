package web

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/origin"
	"github.com/perlica/perlica/kernel/project"
)

// changeShown is a recorded change of a file.
type changeShown struct {
	origin.Shown
	// DiffCut means that Diff has only the first lines of the change.
	DiffCut bool `json:"diff_cut,omitempty"`
}

// changesPage says where a page of changes starts. It has the number of older changes.
type changesPage struct{ Older int }

func (s *Server) changes(w http.ResponseWriter, r *request) error {
	err := r.checkParameters("project", "context", "session", "run", "path", "since", "before", "diff", "limit", "page")
	if err != nil {
		return err
	}
	var from changesPage
	n, err := r.number("limit", 50, 1, origin.MaxCompared) // so each page can be compared with the files
	diff, derr := r.flag("diff", false)
	want := origin.Wanted{Session: event.SessionID(r.URL.Query().Get("session"))}
	var serr, berr error
	want.Since, serr = r.moment("since")
	want.Before, berr = r.moment("before")
	if err := cmp.Or(err, derr, serr, berr, r.page(&from)); err != nil {
		return err
	}
	run, path := event.RunID(r.URL.Query().Get("run")), r.URL.Query().Get("path")
	answer := struct {
		place
		Changes    []changeShown `json:"changes"`
		Unreadable []unreadable  `json:"unreadable"`
		Next       string        `json:"next,omitempty"`
	}{Changes: []changeShown{}, Unreadable: []unreadable{}}
	bad, err := s.readOrigins(r, func(l *eventLog, view *origin.View, files *projectFiles) error {
		answer.place = l.place
		if path != "" {
			want.Paths = files.pathsOf(path)
		}
		list, err := view.Changes(r.Context(), want)
		if err != nil {
			return err
		}
		if run != "" {
			list = slices.DeleteFunc(list, func(c origin.Change) bool { return c.Run != run })
		}
		if from.Older > 0 {
			list = list[:min(from.Older, len(list))]
		}
		if older := len(list) - int(n); older > 0 {
			list, answer.Next = list[older:], nextPage(changesPage{older})
		}
		answer.Changes, err = showChanges(r.Context(), view, list, files, diff)
		return err
	})
	if errors.Is(err, errNoLog) {
		err = nil
	}
	if err != nil {
		return err
	}
	answer.Unreadable = append(answer.Unreadable, bad...)
	return reply(w, http.StatusOK, answer)
}

// These are the largest sizes of the diff of one change, and of all diffs of an answer, in bytes.
const (
	mostOfDiff  = 256 << 10
	mostOfDiffs = 4 << 20
)

// showChanges returns the changes with their present states, the newest first.
func showChanges(ctx context.Context, view *origin.View, list []origin.Change, files *projectFiles,
	diff bool) ([]changeShown, error) {
	shown, _, err := view.Compare(ctx, list, files.readFile)
	if err != nil {
		return nil, err
	}
	out := make([]changeShown, 0, len(shown))
	left := mostOfDiffs
	for _, c := range slices.Backward(shown) {
		one := changeShown{Shown: c}
		one.Why = say(ctx).Read(one.Why, one.Coded)
		if diff {
			text, err := view.Diff(ctx, c.Change)
			if err != nil {
				return nil, err
			}
			one.Diff, one.DiffCut = firstLines(text, min(left, mostOfDiff))
			left -= len(one.Diff)
		}
		out = append(out, one)
	}
	return out, nil
}

// firstLines returns the lines at the beginning of a text that have at most so many bytes together. If the first line
// is longer, firstLines returns a part of it.
func firstLines(text string, most int) (first string, cut bool) {
	if len(text) <= most {
		return text, false
	}
	first = text[:most]
	if end := strings.LastIndexByte(first, '\n'); end >= 0 {
		return first[:end+1], true
	}
	return strings.ToValidUTF8(first, ""), true
}

func (s *Server) blame(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("project", "context", "path", "line", "limit"); err != nil {
		return err
	}
	path := r.URL.Query().Get("path")
	first, err := r.number("line", 1, 1, 1<<31)
	n, nerr := r.number("limit", 1000, 1, 5000)
	if err := cmp.Or(err, nerr); err != nil {
		return err
	}
	if path == "" {
		return badRequest.problem(pathMissing)
	}
	answer := struct {
		place
		origin.File
		First      int64        `json:"first"`
		Total      int64        `json:"total"`
		Unreadable []unreadable `json:"unreadable"`
	}{First: first, Unreadable: []unreadable{}}
	bad, err := s.readOrigins(r, func(l *eventLog, view *origin.View, files *projectFiles) error {
		answer.place = l.place
		content, paths, err := files.readRecorded(r.Context(), view, path)
		if err != nil {
			return err
		}
		f, err := view.Blame(r.Context(), paths, string(content))
		if err != nil {
			return err
		}
		answer.Total = int64(len(f.Lines))
		if first > max(answer.Total, 1) {
			return badRequest.problem(badNumber.With("line", 1, answer.Total))
		}
		f.Lines = f.Lines[first-1 : min(first-1+n, answer.Total)]
		answer.File = onlyNamed(f)
		for i := range answer.Changes {
			c := &answer.Changes[i]
			c.Why = say(r.Context()).Read(c.Why, c.Coded)
		}
		return nil
	})
	if errors.Is(err, errNoLog) {
		return notFound.problem(noRecordedFile.With(path))
	}
	if err != nil {
		return err
	}
	answer.Unreadable = append(answer.Unreadable, bad...)
	return reply(w, http.StatusOK, answer)
}

// onlyNamed leaves out the changes that no line names. A file may have many more changes than a page has lines.
func onlyNamed(f origin.File) origin.File {
	out := origin.File{Path: f.Path, Changes: []origin.Change{}, Lines: []origin.Line{}, States: []origin.State{}}
	to := make([]int, len(f.Changes)) // the new indexes of the changes; 0 means that no line names the change
	for _, l := range f.Lines {
		if l.Change >= 0 {
			to[l.Change] = 1
		}
	}
	for i, named := range to {
		if named > 0 {
			out.Changes, out.States = append(out.Changes, f.Changes[i]), append(out.States, f.States[i])
			to[i] = len(out.Changes)
		}
	}
	for _, l := range f.Lines {
		if l.Change >= 0 {
			l.Change = to[l.Change] - 1
		}
		out.Lines = append(out.Lines, l)
	}
	return out
}

// errNoLog says that the context has no log yet.
var errNoLog = errors.New("web: no log")

// readOrigins calls f with the view of the changes of the log that the request names, and with the files of the
// project. It returns the damage that the log's reader has found. One request at a time reads a view, because each
// holds the content of a file.
func (s *Server) readOrigins(r *request, f func(*eventLog, *origin.View, *projectFiles) error) (bad []unreadable,
	err error) {
	l, err := s.named(r)
	if err != nil {
		return nil, err
	}
	if err := l.requireOwn(filesAtWorker); err != nil {
		return nil, err
	}
	done, err := s.takeTurn(r.Context())
	if err != nil {
		return nil, err
	}
	defer done()
	log, err := l.openReader(r.Context())
	if err == nil && log == nil {
		err = errNoLog
	}
	if err != nil {
		return nil, err
	}
	files, err := l.openFiles()
	if err != nil {
		return nil, err
	}
	defer files.root.Close()
	view, remove, err := project.OpenView(l.paths.Changes, func(path string) (*origin.View, error) {
		return origin.Open(r.Context(), log, path, l.opt.Dirs.ViewKey(), nil)
	})
	if err != nil {
		return nil, err
	}
	defer remove()
	if err := errors.Join(f(l, view, files), view.Close()); err != nil {
		return nil, err
	}
	return l.damage(r.Context(), log), nil
}

// damage lists the log as unreadable if its reader has found a damaged event, or a changed header.
func (l *eventLog) damage(ctx context.Context, log logReader) []unreadable {
	file, ok := log.(*store.Reader)
	if !ok {
		return nil
	}
	if err := cmp.Or(file.Damaged(), file.AwaitCheck()); err != nil {
		return []unreadable{{l.place, say(ctx).Error(err), message.Of(err)}}
	}
	return nil
}

// projectFiles reads files below the directory of a project, except Perlica's own files. No symbolic link leads out of
// the directory.
type projectFiles struct {
	dir  string // without symbolic links
	own  []string
	root *os.Root
}

// openFiles opens the directory of the log's project. The caller closes its root.
func (l *eventLog) openFiles() (*projectFiles, error) {
	root, err := os.OpenRoot(l.Project)
	if err != nil {
		return nil, err
	}
	files := &projectFiles{dir: l.Project, root: root}
	for _, own := range []string{config.Workspace{Root: l.Project}.Dir(), l.opt.Dirs.Config, l.opt.Dirs.State} {
		if real, err := filepath.EvalSymlinks(own); err == nil {
			files.own = append(files.own, real)
		}
	}
	return files, nil
}

// pathsOf returns the absolute path of an argument, and also the path without symbolic links if it differs and is in
// the project.
func (p *projectFiles) pathsOf(arg string) []string {
	path := filepath.Clean(arg)
	if !filepath.IsAbs(path) {
		path = filepath.Join(p.dir, path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path && isBelow(p.dir, real) {
		return []string{path, real}
	}
	return []string{path}
}

// readFile reads a file by an absolute path. It refuses a file out of the project, and one of Perlica's own files.
func (p *projectFiles) readFile(path string) ([]byte, error) {
	real, err := filepath.EvalSymlinks(path)
	if rel, rerr := filepath.Rel(p.dir, path); errors.Is(err, fs.ErrNotExist) && rerr == nil {
		// A link in the path may lead out of the project.
		if _, err := p.root.Stat(rel); errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	if err != nil || !isBelow(p.dir, real) || slices.ContainsFunc(p.own, func(own string) bool {
		return isBelow(own, real)
	}) {
		return nil, errOuterFile
	}
	rel, err := filepath.Rel(p.dir, real)
	if err != nil {
		return nil, err
	}
	return config.ReadRegularIn(p.root, rel, origin.MaxFile)
}

// errOuterFile refuses a file out of the project.
var errOuterFile = errors.New("web: the file is not in the project")

// isBelow reports whether a path is below the folder or the folder itself.
func isBelow(folder, path string) bool {
	rel, err := filepath.Rel(folder, path)
	return err == nil && filepath.IsLocal(rel)
}

// readRecorded reads a file of the project with a recorded change, and returns its absolute paths. The answer is the
// same for a file without a recorded change, out of the project, and for a missing file. So nobody learns by it which
// files exist.
func (p *projectFiles) readRecorded(ctx context.Context, view *origin.View, arg string) (content []byte, paths []string,
	err error) {
	none := notFound.problem(noRecordedFile.With(arg))
	paths = p.pathsOf(arg)
	list, err := view.Changes(ctx, origin.Wanted{Paths: paths})
	if err != nil {
		return nil, nil, err
	}
	if !slices.ContainsFunc(list, func(c origin.Change) bool { return slices.Contains(paths, c.Path) }) {
		return nil, nil, none
	}
	content, err = p.readFile(paths[0])
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errOuterFile):
		return nil, nil, none
	case err != nil:
		return nil, nil, unfit.problem(fileUnread.With(arg, err))
	}
	return content, paths, nil
}
