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

	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/fact"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/kernel/sessions"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/acp"
)

// acpPath is the path for ACP clients. Only this path is upgraded to another protocol.
const acpPath = "/acp"

// acp serves an ACP client on another machine over a WebSocket. It works as 'perlica acp' does for an editor on this
// machine. One text message is one ACP message. Each connection has its own agent. When either side ends, or the device
// is revoked, acp cancels the running turns.
func (s *Server) acp(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters("provider"); err != nil {
		return err
	}
	// A browser cannot sign a WebSocket, so a browser's credential does not prove a person here.
	if !r.visitor.Token {
		return forbidden.problem(forPrograms)
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), "websocket") {
		w.Header().Set("Upgrade", "websocket")
		return upgrade.problem(askForWebSocket)
	}
	opt, err := s.acpOptions(r)
	if err != nil {
		return err
	}
	select {
	case s.clients <- struct{}{}:
		defer func() { <-s.clients }()
	default:
		return tooMany.problem(allClients)
	}
	select {
	case <-s.stopping:
		return stoppingNow.problem(nothingSent)
	default:
	}
	// Count this connection, because Server.Close waits for all of them.
	s.turns.Add(1)
	defer s.turns.Done()
	// The ACP draft of this transport requires this header.
	w.Header().Set("Acp-Connection-Id", uuid.Must(uuid.NewV7()).String())
	conn, err := websocket.Accept(w, r.Request, &websocket.AcceptOptions{CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		// Accept has already sent the client an error.
		return nil
	}
	// CloseNow does nothing after an orderly close.
	defer func() { _ = conn.CloseNow() }()
	conn.SetReadLimit(inputBody)
	status, why := s.relayMessages(r, conn, opt)
	// Close fails only if the client has already gone.
	_ = conn.Close(status, why)
	return nil
}

// relayMessages passes messages between the client and the agent until one side ends. It returns the status and the
// reason with which the caller closes the connection.
func (s *Server) relayMessages(r *request, conn *websocket.Conn, opt acp.Options) (websocket.StatusCode, string) {
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
			end(&kernel.StoppedError{Stop: fact.NewStop("terminated", errStopped)})
		case <-over:
		}
	}()
	in, lines := io.Pipe()
	// Closing the pipe ends the goroutine that reads the connection.
	defer func() { _ = in.Close() }()
	read := make(chan error, 1)
	// An ended context would close the connection before relayMessages can send a reason.
	go func() { read <- s.readMessages(context.WithoutCancel(ctx), conn, lines) }()
	go s.pingClient(ctx, conn, end)
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
	case err := <-read:
		// A nil error means that the client has closed the connection.
		if err != nil {
			return websocket.StatusUnsupportedData, err.Error()
		}
	default:
	}
	return websocket.StatusNormalClosure, ""
}

// errRevoked is the cause with which the connections of a revoked device are cancelled.
var errRevoked = message.New("web.revoked", "the device was revoked")

// readMessages writes each message as a line until the connection ends. A line feed inside a
// message is white space between JSON tokens, so readMessages replaces it by a blank.
func (s *Server) readMessages(ctx context.Context, conn *websocket.Conn, lines *io.PipeWriter) error {
	// Close of a PipeWriter always returns nil.
	defer func() { _ = lines.Close() }()
	for {
		kind, message, err := conn.Read(ctx)
		if err != nil {
			// The client is gone, or its message was too large. In the second case Read has told the client.
			return nil
		}
		if kind != websocket.MessageText {
			return errors.New("send each ACP message as a text message, not as a binary one")
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
			// acp.Serve has ended and no longer reads the lines.
			return nil
		}
	}
}

// pingClient ends the connection of a client that disappeared without closing.
func (s *Server) pingClient(ctx context.Context, conn *websocket.Conn, end context.CancelCauseFunc) {
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
			// readMessages then returns, and the whole connection ends.
			_ = conn.CloseNow()
			return
		}
	}
}

// sender sends lines as WebSocket messages.
type sender struct {
	ctx      context.Context
	conn     *websocket.Conn
	patience time.Duration
}

// Write sends whole lines. A client must accept each line within patience.
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

// acpOptions returns the options of a client's connection. The agent belongs to the project in
// which the server was started. The query may name another provider of this project.
func (s *Server) acpOptions(r *request) (acp.Options, error) {
	home, err := s.logs.oneLog(r.Context(), s.logs.here())
	if err != nil {
		return acp.Options{}, err
	}
	runner, here, err := home.openRunner(r.Context())
	if err != nil {
		return acp.Options{}, err
	}
	choice := project.Choice{Provider: r.URL.Query().Get("provider")}
	agent, err := here.Agent(choice, sessions.Session{})
	if err != nil {
		return acp.Options{}, unfit.wrap(err)
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
			runner, p, err := l.openRunner(context.WithoutCancel(ctx))
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

// holding returns the log of the project that contains a directory. It also returns the directory with all links
// resolved. If several projects contain the directory, holding chooses the innermost one.
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
	l, err := ls.oneLog(ctx, at)
	return l, real, err
}
