package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/coder/websocket"
	"github.com/google/uuid"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/acp"
)

// acpPath is where ACP clients come in: the only path that is upgraded to another protocol.
const acpPath = "/acp"

// acp is the front end for ACP clients on other machines: what an editor has on this machine, over a
// WebSocket. A text message is a message of ACP. Each connection has an agent of its own; when either
// side ends, or the device is revoked, turns under way are cancelled.
func (s *Server) acp(w http.ResponseWriter, r *request) error {
	if err := r.only("provider"); err != nil {
		return err
	}
	if !r.visitor.Token { // a browser's has no way to sign a WebSocket: what comes so is none of a person's
		return forbidden.is("this is for programs, which have a token")
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		return upgrade.is("ask for a WebSocket")
	}
	opt, err := s.acpOptions(r)
	if err != nil {
		return err
	}
	select {
	case s.clients <- struct{}{}:
		defer func() { <-s.clients }()
	default:
		return tooMany.is("as many ACP clients are connected as agents may run")
	}
	select {
	case <-s.stopping:
		return stoppingNow.is("nothing was sent")
	default:
	}
	s.turns.Add(1) // Close waits for it
	defer s.turns.Done()
	w.Header().Set("Acp-Connection-Id", uuid.Must(uuid.NewV7()).String()) // ACP's draft of this transport has it
	conn, err := websocket.Accept(w, r.Request, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return nil // it has answered
	}
	defer func() { _ = conn.CloseNow() }() // where it was closed in order this does nothing
	conn.SetReadLimit(inputBody)
	status, why := s.relay(r, conn, opt)
	_ = conn.Close(status, why) // the client may be gone
	return nil
}

// relay carries messages until an end, and says how the connection is closed.
func (s *Server) relay(r *request, conn *websocket.Conn, opt acp.Options) (websocket.StatusCode, string) {
	ctx, end := context.WithCancelCause(context.WithoutCancel(r.Context()))
	defer end(nil)
	revoked := s.opt.Devices.Revoked(r.visitor.ID)
	over := make(chan struct{})
	defer close(over)
	go func() {
		select {
		case <-revoked:
			end(errRevoked)
		case <-s.stopping:
			end(&kernel.StoppedError{Stop: kernel.Stop{By: "terminated", Why: errStopped.Error()}})
		case <-over:
		}
	}()
	in, lines := io.Pipe()
	defer func() { _ = in.Close() }() // the reader of the connection ends with it
	read := make(chan error, 1)
	// A context that ends would close the connection before it can be said why.
	go func() { read <- s.receive(context.WithoutCancel(ctx), conn, lines) }()
	go s.ping(ctx, conn, end)
	opt.In, opt.Out = in, &sender{ctx: ctx, conn: conn, patience: s.opt.Patience}
	err := acp.Serve(ctx, opt)
	switch {
	case errors.Is(context.Cause(ctx), errRevoked):
		return websocket.StatusPolicyViolation, errRevoked.Error()
	case ctx.Err() != nil:
		return websocket.StatusGoingAway, "the server is being stopped"
	case err != nil:
		s.opt.Trail.Warn("acp", "visitor", r.visitor.ID, "error", err.Error())
		return websocket.StatusInternalError, "the agent, or the record, came to its end"
	}
	select {
	case err := <-read: // nil: the client has closed
		if err != nil {
			return websocket.StatusUnsupportedData, err.Error()
		}
	default:
	}
	return websocket.StatusNormalClosure, ""
}

// errRevoked is why a device's connections end.
var errRevoked = errors.New("the device was revoked")

// receive writes each message as a line, until there are no more. A line feed in a message is a blank
// between its parts, and goes on as one.
func (s *Server) receive(ctx context.Context, conn *websocket.Conn, lines *io.PipeWriter) error {
	defer func() { _ = lines.Close() }() // its error is nil
	for {
		kind, message, err := conn.Read(ctx)
		if err != nil {
			return nil // the client is gone, or has sent too much and was told
		}
		if kind != websocket.MessageText {
			return errors.New("a message of ACP is a text message")
		}
		if !utf8.Valid(message) {
			return errors.New("a message of ACP is UTF-8")
		}
		message = append(bytes.Map(func(c rune) rune {
			if c == '\n' || c == '\r' {
				return ' '
			}
			return c
		}, message), '\n')
		if _, err := lines.Write(message); err != nil {
			return nil // the other side has ended
		}
	}
}

// ping ends the connection of a client that is gone without a word.
func (s *Server) ping(ctx context.Context, conn *websocket.Conn, end context.CancelCauseFunc) {
	beat := time.NewTicker(s.opt.Heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-beat.C:
		case <-ctx.Done():
			return
		}
		alive, cancel := context.WithTimeout(ctx, s.opt.Patience)
		err := conn.Ping(alive)
		cancel()
		if err != nil {
			_ = conn.CloseNow() // receive ends, and with it all
			return
		}
	}
}

// sender sends lines as messages.
type sender struct {
	ctx      context.Context
	conn     *websocket.Conn
	patience time.Duration
}

// Write sends whole lines. A client has so long to take each.
func (c *sender) Write(b []byte) (int, error) {
	for line := range bytes.Lines(b) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), c.patience)
		err := c.conn.Write(ctx, websocket.MessageText, bytes.TrimSuffix(line, []byte("\n")))
		cancel()
		if err != nil {
			return 0, err
		}
	}
	return len(b), nil
}

// acpOptions are those of a client's connection: the agent is the one of the project in which the server
// was started, or the one of its providers that the query names.
func (s *Server) acpOptions(r *request) (acp.Options, error) {
	home, err := s.logs.one(r.Context(), s.logs.here())
	if err != nil {
		return acp.Options{}, err
	}
	runner, here, err := home.work(r.Context())
	if err != nil {
		return acp.Options{}, err
	}
	choice := project.Choice{Provider: r.URL.Query().Get("provider")}
	agent, err := here.Agent(choice, sessions.Session{})
	if err != nil {
		return acp.Options{}, unfit.of(err)
	}
	answers := acp.AnswersNone
	if r.visitor.Rights.Has(access.Approve) {
		answers = acp.Answers(here.Config.Editor.Answers)
	}
	return acp.Options{
		Agent: agent, Dir: here.Dir, Environ: s.opt.Environ, Version: s.opt.Version, Limit: string(here.Mode()),
		Answers: answers, Visitor: r.visitor.Label(), Home: runner,
		Open: func(ctx context.Context, dir string) (*acp.Place, error) {
			l, dir, err := s.logs.holding(ctx, dir)
			if err != nil {
				return nil, err
			}
			runner, p, err := l.work(context.WithoutCancel(ctx))
			if err != nil {
				return nil, err
			}
			place := &acp.Place{Runner: runner, Setup: func(string) kernel.Setup {
				c := choice
				c.Dir = dir
				return p.Setup(c, agent, sessions.Session{})
			}}
			place.Turn.Permissions, place.Turn.AnswerIn = p.Answering(true, 0)
			return place, nil
		},
		Log: func(format string, args ...any) {
			s.opt.Trail.Info("acp", "visitor", r.visitor.ID, "said", fmt.Sprintf(format, args...))
		},
	}, nil
}

// holding returns the log of the project in which a directory lies, of several the innermost's, and the
// directory without links.
func (ls *logs) holding(ctx context.Context, dir string) (*eventLog, string, error) {
	outside := fmt.Errorf("cwd lies in no project that GET /v1/contexts lists: %w", fs.ErrNotExist)
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, "", outside
	}
	list, err := ls.list(ctx, place{})
	if err != nil {
		return nil, "", err
	}
	at := place{}
	for _, l := range list {
		root, err := filepath.EvalSymlinks(l.Project)
		if err != nil {
			continue
		}
		if rel, err := filepath.Rel(root, real); err == nil && filepath.IsLocal(rel) && len(l.Project) > len(at.Project) {
			at.Project = l.Project
		}
	}
	if at.Project == "" {
		return nil, "", outside
	}
	l, err := ls.one(ctx, at)
	return l, real, err
}
