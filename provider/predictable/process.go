package predictable

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strconv"
	"time"
)

func line(a *args) action {
	return plainStep(func(r *request) error { return r.agent.conn.WriteLine([]byte(r.fillIDs(a.text))) })
}

func rawBytes(a *args) action {
	return plainStep(func(r *request) error { return r.agent.out.writeRaw([]byte(r.fillIDs(a.text))) })
}

func garbage(a *args) action {
	size := a.number("SIZE", 0, math.MaxInt32)
	return plainStep(func(r *request) error { return r.agent.conn.WriteLine(bytes.Repeat([]byte("?"), size)) })
}

func eol(a *args) action {
	return plainStep(func(r *request) error {
		ending := a.text
		if ending == "" {
			ending = "\n"
		}
		r.agent.out.setEnding(ending)
		return nil
	})
}

func stderr(a *args) action {
	return plainStep(func(r *request) error {
		// The client need not read standard error, so a failed write does not matter.
		_, _ = io.WriteString(r.agent.errw, a.text+"\n")
		return nil
	})
}

func flood(a *args) action {
	size := a.number("SIZE", 0, math.MaxInt32)
	return func(ctx context.Context, r *request) error {
		lines := bytes.Repeat([]byte("stderr stderr stderr stderr stderr stderr stderr stderr stderr stderr stderr st\n"),
			400)
		for left := size; left > 0; left -= len(lines) {
			if err := interrupted(ctx); err != nil {
				return err
			}
			// A failed write to standard error does not matter, as in stderr.
			_, _ = r.agent.errw.Write(lines[:min(left, len(lines))])
		}
		return nil
	}
}

func closeStdout(*args) action {
	return plainStep(func(r *request) error {
		r.agent.out.closeOutput()
		return nil
	})
}

func exit(a *args) action {
	code := a.number("CODE", 0, 255)
	return plainStep(func(r *request) error {
		if r.agent.opt.Exit == nil {
			os.Exit(code)
		}
		r.agent.opt.Exit(code)
		r.agent.leave()
		return errGone
	})
}

func kill(*args) action {
	return plainStep(func(r *request) error {
		if r.agent.opt.Kill == nil {
			return killSelf()
		}
		r.agent.opt.Kill()
		r.agent.leave()
		return errGone
	})
}

// killSelf kills this process. It returns only if the kill failed.
func killSelf() error {
	p, err := os.FindProcess(os.Getpid())
	if err != nil {
		return err
	}
	if err := p.Kill(); err != nil {
		return err
	}
	select {}
}

// child describes the process that @spawn starts.
type child struct {
	lifetime                         time.Duration
	daemon, stubborn, stdout, stderr bool
}

func spawnChild(a *args) action {
	c := child{lifetime: a.duration("DURATION", a.word("DURATION"))}
	for len(a.words) > 0 {
		switch a.oneOf("each further word", "daemon", "stubborn", "stdout", "stderr") {
		case "daemon":
			c.daemon = true
		case "stubborn":
			c.stubborn = true
		case "stdout":
			c.stdout = true
		case "stderr":
			c.stderr = true
		}
	}
	if c.stubborn && c.stdout && c.stderr {
		a.setError(errors.New("a stubborn child needs stdout or stderr to say that it is one"))
	}
	return func(ctx context.Context, r *request) error {
		pid, err := r.agent.startChild(c)
		if err != nil {
			return fmt.Errorf("@spawn: %w", err)
		}
		return r.sayChunk(ctx, "spawned: "+strconv.Itoa(pid)+"\n")
	}
}

// startChild starts this agent again with a scenario that only sleeps. A goroutine reaps the child. Serve does not wait
// for the child, because the child may outlive this process.
func (a *agent) startChild(c child) (int, error) {
	argv := a.opt.Self
	if argv == nil {
		self, err := os.Executable()
		if err != nil {
			return 0, err
		}
		argv = []string{self, "agent", "predictable"}
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	files := []*os.File{null, null, null}
	if f, ok := a.out.out.(*os.File); ok && c.stdout {
		files[1] = f
	}
	if f, ok := a.errw.(*lockedWriter).out.(*os.File); ok && c.stderr {
		files[2] = f
	}
	p, err := c.startProcess(append(slices.Clone(argv), "--scenario", c.scenario()),
		&os.ProcAttr{Files: files, Sys: apart(c.daemon)})
	if err != nil {
		return 0, err
	}
	go func() { _, _ = p.Wait() }()
	return p.Pid, nil
}

func (c child) scenario() string {
	sleep := "@sleep " + c.lifetime.String() + "\n@exit 0"
	switch {
	case !c.stubborn:
		return "[start]\n" + sleep
	case c.stdout:
		return "[start]\n@ignore term\n@stderr ready\n" + sleep
	}
	return "[start]\n@ignore term\n@line ready\n" + sleep
}

// startProcess starts the child. A stubborn child ignores SIGTERM, and startProcess waits until it does. Otherwise a
// client could end the child with SIGTERM as soon as it knows the pid.
func (c child) startProcess(argv []string, attr *os.ProcAttr) (*os.Process, error) {
	if !c.stubborn {
		return os.StartProcess(argv[0], argv, attr)
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	if c.stdout {
		attr.Files[2] = w
	} else {
		attr.Files[1] = w
	}
	p, err := os.StartProcess(argv[0], argv, attr)
	if err = errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	if _, err := r.Read(make([]byte, 1)); err != nil {
		return nil, fmt.Errorf("the child has not started: %w", err)
	}
	return p, nil
}
