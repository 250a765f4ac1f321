package checkup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/perlica/perlica/eventlog"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/trail"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/config"
)

// fullSpace is the free space, in bytes, that opening a log needs.
const fullSpace = 1 << 20

// configuration reports every mistake in the configuration.
func (e *examination) configuration() {
	var problems config.Problems
	switch {
	case errors.As(e.Broken, &problems):
		for _, p := range problems {
			e.fail("", "%v", p)
		}
	case e.Broken != nil:
		e.fail("", "%v", e.Broken)
	default:
		var files []string
		for _, path := range []string{e.Dirs.ConfigFile(), e.Workspace.ConfigFile()} {
			if _, err := os.Stat(path); err == nil {
				files = append(files, path)
			}
		}
		switch len(files) {
		case 0:
			e.ok("valid: the defaults; there is no file")
		case 1:
			e.ok("valid: %s", files[0])
		default:
			e.ok("valid: %s and %s", files[0], files[1])
		}
	}
	for _, w := range e.Config.Warnings {
		e.warn("", "%s", w)
	}
}

func (e *examination) trust() {
	switch n := len(e.Config.Withheld); {
	case e.Config.Project.Digest == "":
		e.ok("the project has nothing to trust")
	case e.Config.Project.Trusted:
		e.ok("the project's files count in full")
	case n == 0:
		e.ok("the project's files are not trusted, and need not be: they loosen nothing")
	default:
		e.warn("'perlica config trust' shows them and asks", "%s of the project left aside until it is trusted: %s",
			english.Plural(n, "line", ""), e.Config.Withheld[0])
	}
}

// workspace checks the workspace. If it is unusable, the checks of the log are skipped.
func (e *examination) workspace() {
	var broken *config.WorkspaceError
	if errors.Is(e.Broken, config.ErrNoHome) {
		e.fail("", "not looked for: it lies below the home directory or outside of it, and that is not known")
		return
	}
	if errors.As(e.Broken, &broken) || e.Workspace.Root == "" {
		e.fail("move it away, or run in another folder", "there is no usable workspace: %v", e.Broken)
		return
	}
	open, err := e.Workspace.Check(e.context)
	if err != nil {
		e.fail("move it away, or run in another folder", "%v", err)
		return
	}
	if e.paths, err = e.Workspace.Context(e.context); err != nil {
		e.fail("", "%v", err)
		return
	}
	e.usable = true
	switch {
	case len(open) > 0:
		e.warn("chmod -R go-rwx "+filepath.Join(e.Workspace.Dir(), "contexts"), "others can get at %s, such as %s",
			english.Plural(len(open), "file or folder", ""), open[0])
	case !e.Workspace.Exists:
		e.ok("not there yet; the first run makes %s", e.Workspace.Dir())
	default:
		e.ok("%s, context %s", e.Workspace.Dir(), e.context)
	}
}

// nearest returns the deepest existing folder on the path to the context's folder.
func (e *examination) nearest() string {
	for _, dir := range []string{e.paths.Dir, filepath.Dir(e.paths.Dir), e.Workspace.Dir()} {
		if info, err := os.Stat(dir); err == nil && info.IsDir() {
			return dir
		}
	}
	return e.Workspace.Root
}

func (e *examination) diskSpace() {
	free, err := disk.FreeSpace(e.nearest())
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		e.ok("not known on this system")
	case err != nil:
		e.warn("", "%v", err)
	case free < kernel.LowSpace:
		e.warn("free some space: a run ends when its log cannot be written", "only %s free at %s", humanize.IBytes(free),
			e.nearest())
	default:
		e.ok("%s free", humanize.IBytes(free))
	}
}

// logWritable tests whether a log can be written in the context's folder.
func (e *examination) logWritable() {
	dir := e.nearest()
	err := eventlog.TryWrite(e.ctx, dir)
	var setting *disk.SettingError
	switch {
	case err == nil:
		e.ok("a log can be written in %s", dir)
	case errors.Is(err, disk.ErrFull), e.isFull(dir):
		e.fail("free some space", "the disk is full: %v", err)
	case errors.As(err, &setting):
		e.fail("this build's SQLite does not do what it is told: use another build of Perlica", "%v", err)
	case errors.Is(err, disk.ErrReadOnly), errors.Is(err, fs.ErrPermission):
		hint := "make the folder writable, or run in another one"
		if errors.Is(err, syscall.EROFS) {
			hint = "mount the file system for writing, or run in a folder on another one"
		}
		e.fail(hint, "%s cannot be written: %v", dir, err)
	default:
		e.fail("a log needs a local disk with working locks; --context does not help here, another folder may",
			"no log can be written in %s: %v", dir, err)
	}
	if err == nil && e.paths.EventLog != "" {
		info, err := os.Stat(e.paths.EventLog)
		if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o200 == 0 {
			e.fail("chmod u+w "+e.paths.EventLog, "%s may not be written by its owner", e.paths.EventLog)
		}
	}
}

// isFull reports whether the disk of dir is full. SQLite does not always report a full disk as such.
func (e *examination) isFull(dir string) bool {
	free, err := disk.FreeSpace(dir)
	return err == nil && free < fullSpace
}

func (e *examination) debugTrail() {
	files, bytes, err := trail.Usage(e.paths.Logs)
	limit := int64(e.Config.Logs.MaxTotalMB) << 20
	switch {
	case err != nil:
		e.warn("runs go on without a debug trail", "%v", err)
	case files == 0:
		e.ok("empty")
	case limit > 0 && bytes > limit:
		e.warn("the next run sweeps it", "%s with %s, over the limit of %s", english.Plural(files, "file", ""),
			humanize.IBytes(uint64(bytes)), humanize.IBytes(uint64(limit)))
	default:
		e.ok("%s with %s", english.Plural(files, "file", ""), humanize.IBytes(uint64(bytes)))
	}
}

// sockets checks the folder of the sockets that processes use to wake each other.
func (e *examination) sockets() {
	if e.Dirs.Runtime == "" {
		return
	}
	const hint = "set XDG_RUNTIME_DIR or PERLICA_HOME to another folder of your own; until then questions can be answered only " +
		"where they are asked"
	if err := interaction.TryListen(e.Dirs.Runtime); err != nil {
		e.fail(hint, "%v", err)
		return
	}
	if _, err := os.Stat(e.Dirs.Runtime); err == nil {
		e.ok("%s", e.Dirs.Runtime)
		return
	}
	if err := creatable(e.Dirs.Runtime); err != nil {
		e.fail(hint, "%s cannot be made: %v", e.Dirs.Runtime, err)
		return
	}
	e.ok("%s, made when it is needed", e.Dirs.Runtime)
}

// creatable tests whether a missing folder could be created.
func creatable(dir string) error {
	for dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		info, err := os.Stat(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return errors.New(dir + " is not a folder")
		}
		break
	}
	tmp, err := os.MkdirTemp(dir, ".perlica-try-")
	if err != nil {
		return err
	}
	return os.Remove(tmp)
}
