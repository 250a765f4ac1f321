package web

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pb33f/libopenapi"
	validator "github.com/pb33f/libopenapi-validator"

	"github.com/perlica/perlica/kernel"
	"github.com/perlica/perlica/kernel/project"
	"github.com/perlica/perlica/provider/predictable"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/web/device"
)

// TestMain runs the built-in agent when the registry starts the test binary as "agent". A further
// argument names the agent's state directory or its scenario.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "agent" {
		opt := predictable.Options{}
		if len(os.Args) > 3 {
			opt.State = os.Args[3]
			if strings.HasPrefix(opt.State, "[") {
				opt.State, opt.Scenario = "", os.Args[3]
			}
		}
		if err := predictable.Serve(context.Background(), os.Stdin, os.Stdout, os.Stderr, opt); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Most parallel tests wait, for a browser or for two seconds to pass.
	_ = flag.Set("test.parallel", "4")
	code := m.Run()
	afterTests()
	os.Exit(code)
}

// afterTests removes resources that all tests share.
var afterTests = func() {}

// described validates every answer against openapi.json.
var described = sync.OnceValue(func() validator.Validator {
	doc, err := libopenapi.NewDocument(description)
	if err != nil {
		panic(err)
	}
	v, errs := validator.NewValidator(doc)
	if len(errs) > 0 {
		panic(errs)
	}
	return v
})

// world is a user with projects and a server.
type world struct {
	t       *testing.T
	home    string
	environ []string
	dirs    []string // the directories of the projects
	user    *kernel.Runner
	devices *device.Devices
	opt     Options
	server  *Server
	http    *httptest.Server
	secure  bool   // over TLS
	token   string // has all rights except admin
}

// longest limits the wait for an expected event. It is long because a loaded machine is slow.
const longest = 2 * time.Minute

// newWorld makes a user with this many projects. The server starts in the first one.
func newWorld(t *testing.T, projects int, change ...func(*Options)) *world {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, home: filepath.Join(root, "home")}
	w.environ = append(os.Environ(), "PERLICA_HOME="+w.home, "PERLICA_MODEL_DEFAULT_PROVIDER=predictable")
	for i := range projects {
		dir := filepath.Join(root, fmt.Sprintf("project-%d", i))
		// The folder makes this directory a project, so Find does not take a folder above it.
		if err := os.MkdirAll(filepath.Join(dir, ".perlica_config"), 0o700); err != nil {
			t.Fatal(err)
		}
		w.dirs = append(w.dirs, dir)
	}
	own, err := project.User(w.dirs[0], w.environ, nil)
	check(t, err)
	runner, done, err := own.Open(t.Context(), "test")
	check(t, err)
	t.Cleanup(func() {
		if err := done(); err != nil {
			t.Error(err)
		}
	})
	w.user = runner
	here, err := project.Find(w.dirs[0], w.environ, nil)
	check(t, err)
	w.opt = Options{Dirs: own.Dirs, Environ: w.environ, Version: "test", Here: here}
	for _, f := range change {
		f(&w.opt)
	}
	w.devices, err = device.Open(t.Context(), runner.Log(), device.Options{Base: w.opt.Base})
	check(t, err)
	t.Cleanup(func() { _ = w.devices.Close() })
	w.opt.Devices = w.devices
	for _, dir := range w.dirs[1:] {
		w.use(dir)
	}
	w.token = w.newToken("program", access.Read, access.Ask, access.Approve)
	w.start()
	return w
}

// namedProvider configures the built-in agent under another name.
func namedProvider(t *testing.T, name, argument string) func(*Options) {
	return func(o *Options) {
		t.Helper()
		check(t, os.MkdirAll(o.Dirs.Config, 0o700))
		text := fmt.Sprintf("[providers.%s]\nadapter.command = %q\nadapter.args = [\"agent\", \"predictable\", %q]\n", name,
			os.Args[0], argument)
		check(t, os.WriteFile(filepath.Join(o.Dirs.Config, "config.toml"), []byte(text), 0o600))
		here, err := project.Find(o.Here.Dir, o.Environ, nil)
		check(t, err)
		o.Here = here
	}
}

// use opens a project's log for work, as a first run would.
func (w *world) use(dir string) {
	w.t.Helper()
	p, err := project.Find(dir, w.environ, nil)
	check(w.t, err)
	_, done, err := p.Open(w.t.Context(), "test")
	check(w.t, err)
	check(w.t, done())
}

// start starts the server. The server ends with the test.
func (w *world) start() {
	w.http = httptest.NewUnstartedServer(nil)
	w.serve()
}

// serve serves on the listener of w.http.
func (w *world) serve() {
	w.opt.Hosts = append(w.opt.Hosts, w.http.Listener.Addr().String())
	w.server = New(w.opt)
	w.http.Config.Handler = w.server
	if w.secure {
		w.http.StartTLS()
	} else {
		w.http.Start()
	}
	server, served := w.server, w.http
	w.t.Cleanup(func() { stop(w.t, server, served) })
}

// again starts another server at the address of the stopped server.
func (w *world) again() {
	w.t.Helper()
	listener, err := net.Listen("tcp", w.http.Listener.Addr().String())
	check(w.t, err)
	w.http = httptest.NewUnstartedServer(nil)
	check(w.t, w.http.Listener.Close())
	w.http.Listener = listener
	w.serve()
}

// stop ends a server and its turns. The server may already be stopped.
func stop(t *testing.T, s *Server, h *httptest.Server) {
	s.Stop()
	h.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Close(ctx); err != nil {
		t.Error(err)
	}
}

// newToken returns the token of a new program with these rights.
func (w *world) newToken(name string, rights ...access.Right) string {
	w.t.Helper()
	token, _, err := w.devices.NewToken(w.t.Context(), name, rights, "test")
	check(w.t, err)
	return token
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// response is a completely read answer.
type response struct {
	t      *testing.T
	status int
	header http.Header
	body   []byte
}

// do makes a request with the token and validates the answer.
func (w *world) do(method, path string, body any, change ...func(*http.Request)) *response {
	w.t.Helper()
	r, err := w.try(method, path, body, change...)
	check(w.t, err)
	return r
}

// try makes a request like do. It returns an error if the server is gone.
func (w *world) try(method, path string, body any, change ...func(*http.Request)) (*response, error) {
	w.t.Helper()
	// An accepted stream would never end.
	ctx, cancel := context.WithTimeout(w.t.Context(), longest)
	defer cancel()
	req := w.request(method, path, body).WithContext(ctx)
	for _, f := range change {
		f(req)
	}
	res, err := w.http.Client().Do(req)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		return nil, err
	}
	r := &response{w.t, res.StatusCode, res.Header, data}
	w.hold(req, res, data)
	return r, nil
}

// hold validates an answer against the description and the rules for all answers.
func (w *world) hold(req *http.Request, res *http.Response, data []byte) {
	w.t.Helper()
	for name := range securityHeaders {
		if res.Header.Get(name) == "" && !strings.HasPrefix(name, "perlica") {
			w.t.Errorf("%s %s: no %s", req.Method, req.URL.Path, name)
		}
	}
	if req.Method != http.MethodGet && req.Method != http.MethodPost || req.URL.Path == "/" || res.StatusCode == 404 ||
		res.StatusCode == 405 {
		if res.StatusCode >= 400 && res.Header.Get("Content-Type") != "application/problem+json" {
			w.t.Errorf("%s %s: an error as %s", req.Method, req.URL.Path, res.Header.Get("Content-Type"))
		}
		return
	}
	copied := *res
	copied.Body = io.NopCloser(bytes.NewReader(data))
	asked := req.Clone(context.Background())
	asked.Body = http.NoBody
	if ok, errs := described().ValidateHttpResponse(asked, &copied); !ok {
		for _, e := range errs {
			w.t.Errorf("%s %s: %d %s\nnot as described: %s: %s", req.Method, req.URL, res.StatusCode, data, e.Message, e.Reason)
			for _, s := range e.SchemaValidationErrors {
				w.t.Errorf("  %s at %s", s.Reason, s.FieldPath)
			}
		}
	}
}

// request returns a request with the token and a JSON body.
func (w *world) request(method, path string, body any) *http.Request {
	w.t.Helper()
	var in io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		check(w.t, err)
		in = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(w.t.Context(), method, w.http.URL+path, in)
	check(w.t, err)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	req.Header.Set("Authorization", "Bearer "+w.token)
	return req
}

// want fails unless the answer has a status.
func (r *response) want(status int) *response {
	r.t.Helper()
	if r.status != status {
		r.t.Fatalf("got %d, want %d: %s", r.status, status, r.body)
	}
	return r
}

// problem fails unless the answer is a problem of a kind.
func (r *response) problem(k kind) *problem {
	r.t.Helper()
	r.want(k.status)
	var p problem
	r.into(&p)
	if p.Type != "docs/http.md#"+k.name {
		r.t.Errorf("the problem is %q, want %q", p.Type, k.name)
	}
	return &p
}

// into decodes the answer.
func (r *response) into(v any) {
	r.t.Helper()
	if err := json.Unmarshal(r.body, v); err != nil {
		r.t.Fatalf("%v: %s", err, r.body)
	}
}

// object is a JSON object.
type object = map[string]any

func (r *response) object() object {
	var o object
	r.into(&o)
	return o
}

// items returns the objects of a list in an object.
func items(o object, name string) (list []object) {
	all, _ := o[name].([]any)
	for _, one := range all {
		list = append(list, one.(object))
	}
	return list
}
