package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"time"
)

// These are the numbers of all followers, of slow followers, and of updates in a flood over HTTP.
const (
	webFollowers = 200
	webSlow      = 40
	webUpdates   = 20_000
	webRounds    = 9
)

// webs measures a run in 'perlica web' with many followers in another process, and the same run without followers. It
// compares the times. The two kinds of runs take turns.
func webs(dir string, _ options) {
	perlica := filepath.Join(dir, "perlica")
	build(perlica, "./cmd/perlica")
	project := filepath.Join(dir, "project")
	check(os.MkdirAll(project, 0o700))
	s := startWeb(project, func(argv ...string) *exec.Cmd {
		cmd := exec.Command(perlica, argv...)
		cmd.Dir = project
		cmd.Env = []string{"PATH=" + dir, "HOME=" + dir, "PERLICA_HOME=" + filepath.Join(dir, "home")}
		return cmd
	})
	raw := s.recordFlood()
	var alone, followed, whole, bare []time.Duration
	for i := range webRounds + 1 {
		sent := sendBare(raw)
		took := s.runFlood()
		f := s.startFollowers()
		start := time.Now()
		with := s.runFlood()
		f.waitEnd()
		if i > 0 { // The first round makes the files and fills the caches.
			alone, followed, whole = append(alone, took), append(followed, with), append(whole, time.Since(start))
			bare = append(bare, sent)
		}
	}
	s.end()
	ratio(fmt.Sprintf("a run of %d updates, followed by %d", webUpdates, webFollowers), ms(median(followed)),
		ms(median(alone)), "ms", "at most 1.3")
	ratio("  until each has all of it; the bytes alone", median(whole).Seconds(), median(bare).Seconds(), "s",
		"at most 2 s")
	if peak := peakMemory(s.cmd.ProcessState); peak > 0 {
		fmt.Printf("%-52s %10.1f %10s %-9s              (at most 200)\n", "  the server's peak of resident memory",
			float64(peak)/(1<<20), "", "MB")
	}
}

// webServer is a process of 'perlica web'.
type webServer struct {
	cmd            *exec.Cmd
	at             string // host:port
	token, project string
}

var webAddress = regexp.MustCompile(`the page is at http://([0-9.:]+)/`)

// startWeb starts the server in a project. The function command returns a command of perlica.
func startWeb(project string, command func(argv ...string) *exec.Cmd) *webServer {
	s := &webServer{project: project}
	cmd := command("web", "token", fmt.Sprint("bench-", os.Getpid()), "--rights", "read,ask")
	s.token = strings.TrimSpace(string(must(cmd.Output())))
	s.cmd = command("web", "--listen", "127.0.0.1:0")
	lines := bufio.NewScanner(must(s.cmd.StderrPipe()))
	check(s.cmd.Start())
	for s.at == "" && lines.Scan() {
		if m := webAddress.FindStringSubmatch(lines.Text()); m != nil {
			s.at = m[1]
		}
	}
	go func() {
		for lines.Scan() { // If nobody read the output, the server would block.
		}
	}()
	return s
}

func (s *webServer) end() {
	check(s.cmd.Process.Signal(syscall.SIGTERM))
	check(s.cmd.Wait())
}

// timeGet returns the median time of a request.
func (s *webServer) timeGet(path string, rounds int) time.Duration {
	var all []time.Duration
	for range rounds {
		req := must(http.NewRequest("GET", "http://"+s.at+path, nil))
		req.Header.Set("Authorization", "Bearer "+s.token)
		req.Header.Set("Accept", "application/json") // a page of events and not a stream
		start := time.Now()
		res := must(http.DefaultClient.Do(req))
		answer := must(io.ReadAll(res.Body))
		all = append(all, time.Since(start))
		if check(res.Body.Close()); res.StatusCode != http.StatusOK {
			check(fmt.Errorf("%s: %s: %.300s", path, res.Status, answer))
		}
	}
	return median(all)
}

// runFlood starts one run of many updates and returns its time.
func (s *webServer) runFlood() time.Duration {
	body := must(json.Marshal(map[string]any{"project": s.project, "provider": "predictable",
		"text": fmt.Sprintf("@stream %d 40", webUpdates), "wait": true}))
	req := must(http.NewRequest("POST", "http://"+s.at+"/v1/inputs", bytes.NewReader(body)))
	req.Header.Set("Authorization", "Bearer "+s.token)
	req.Header.Set("Content-Type", "application/json")
	start := time.Now()
	res := must(http.DefaultClient.Do(req))
	answer := must(io.ReadAll(res.Body))
	took := time.Since(start)
	if res.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"outcome":"responded"`)) {
		check(fmt.Errorf("%s: %.300s", res.Status, answer))
	}
	check(res.Body.Close())
	return took
}

// recordFlood returns the bytes that one follower of a flood receives.
func (s *webServer) recordFlood() []byte {
	req := must(http.NewRequest("GET", "http://"+s.at+"/v1/events", nil))
	req.Header.Set("Authorization", "Bearer "+s.token)
	res := must(http.DefaultClient.Do(req))
	var raw []byte
	in := bufio.NewReader(res.Body)
	for opened := false; !opened; {
		raw = append(raw, must(in.ReadBytes('\n'))...)
		opened = bytes.HasSuffix(raw, []byte("\n\n"))
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		for finished := false; !finished || !bytes.HasSuffix(raw, []byte("\n\n")); {
			line := must(in.ReadBytes('\n'))
			raw = append(raw, line...)
			finished = finished || bytes.Contains(line, []byte(`"type":"run.finished"`))
		}
	}()
	s.runFlood()
	<-over
	check(res.Body.Close())
	return raw
}

// sendBare sends recorded bytes to all followers from memory, and returns the time until each has them. The followers
// themselves need most of this time.
func sendBare(raw []byte) time.Duration {
	opened := bytes.Index(raw, []byte("\n\n")) + 2
	begin := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write(raw[:opened]) // A follower reports missing bytes.
		_ = http.NewResponseController(w).Flush()
		rest := raw[opened:]
		if last := r.Header.Get("Last-Event-ID"); last != "" { // a slow follower continues
			_, rest, _ = bytes.Cut(raw, []byte("id: "+last+"\n"))
			_, rest, _ = bytes.Cut(rest, []byte("\n\n"))
		}
		<-begin
		_, _ = w.Write(rest)
	}))
	f := (&webServer{at: strings.TrimPrefix(server.URL, "http://")}).startFollowers()
	start := time.Now()
	close(begin)
	f.waitEnd()
	took := time.Since(start)
	server.Close()
	return took
}

// followers is one process with all followers. It runs this program with the arguments "followers", the address and
// the token.
type followers struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

// startFollowers starts the followers and returns when all of them follow.
func (s *webServer) startFollowers() *followers {
	cmd := exec.Command(must(os.Executable()), "followers", s.at, s.token)
	cmd.Stderr = os.Stderr
	f := &followers{cmd: cmd, in: must(cmd.StdinPipe()), out: bufio.NewReader(must(cmd.StdoutPipe()))}
	check(cmd.Start())
	must(f.out.ReadString('\n'))
	return f
}

// waitEnd tells the followers that the run is over and waits until each has all events.
func (f *followers) waitEnd() {
	check(f.in.Close())
	check(f.cmd.Wait())
}

// followAll is the process of the followers. It fails if a follower misses an event or gets one twice.
func followAll(at, token string) {
	over := make(chan struct{})
	var opened, all sync.WaitGroup
	opened.Add(webFollowers)
	failed := make(chan error, webFollowers)
	for i := range webFollowers {
		all.Go(func() {
			f := &webFollower{at: at, token: token}
			if i < webSlow {
				f.over = over
			}
			failed <- f.followRun(opened.Done)
		})
	}
	opened.Wait()
	fmt.Println("ready")
	must(io.Copy(io.Discard, os.Stdin))
	close(over)
	all.Wait()
	close(failed)
	for err := range failed {
		check(err)
	}
}

// webFollower is one client that follows the events of all logs.
type webFollower struct {
	at, token string
	over      <-chan struct{} // for a slow follower, which reads at full speed after this is closed
	cursor    string
	texts     int
	finished  bool
}

var errSlow = errors.New("the run is over")

// followRun reads events until the run has finished. A slow follower that the server cuts off continues after the
// run.
func (f *webFollower) followRun(opened func()) error {
	err := f.readStream(f.over, opened)
	if f.over != nil && !f.finished && (errors.Is(err, errSlow) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, syscall.ECONNRESET)) {
		<-f.over
		err = f.readStream(nil, func() {})
	}
	if err == nil && f.texts != webUpdates {
		err = fmt.Errorf("a follower, slow: %t, has %d updates of %d", f.over != nil, f.texts, webUpdates)
	}
	return err
}

// readStream reads a stream. A slow follower reads four kilobytes in 20 ms.
func (f *webFollower) readStream(over <-chan struct{}, opened func()) error {
	req, err := http.NewRequest("GET", "http://"+f.at+"/v1/events", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+f.token)
	if f.cursor != "" {
		req.Header.Set("Last-Event-ID", f.cursor)
	}
	res, err := (&http.Transport{DisableKeepAlives: true, ReadBufferSize: 4 << 10}).RoundTrip(req)
	if err != nil {
		return fmt.Errorf("a follower, slow: %t, cannot follow from %q: %w", f.over != nil, f.cursor, err)
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("a follower, slow: %t, gets %s", f.over != nil, res.Status)
	}
	defer func() { _ = res.Body.Close() }() // The body was only read, so a failed close loses no data.
	from := io.Reader(res.Body)
	if over != nil {
		from = &slowly{res.Body, over}
	}
	in := bufio.NewScanner(from)
	in.Buffer(make([]byte, 4<<10), 8<<20) // The buffer is large, because the event of the outcome contains the whole text.
	cursor, text := "", false
	for in.Scan() {
		line := in.Bytes()
		switch {
		case len(line) == 0: // The event is complete.
			if f.cursor = cmp.Or(cursor, f.cursor); text {
				f.texts++
			}
			if text = false; f.finished {
				return nil
			}
		case bytes.HasPrefix(line, []byte("id: ")):
			cursor = string(line[4:])
		case bytes.HasPrefix(line, []byte("event: open")):
			opened()
		case bytes.HasPrefix(line, []byte("data: ")):
			text = bytes.Contains(line, []byte(`"type":"text"`))
			f.finished = bytes.Contains(line, []byte(`"type":"run.finished"`))
		}
	}
	f.finished = false // The server cut the follower off in the middle of an event.
	return cmp.Or(in.Err(), io.ErrUnexpectedEOF)
}

// slowly reads slowly until the channel over is closed, and then at full speed.
type slowly struct {
	from io.Reader
	over <-chan struct{}
}

func (s *slowly) Read(b []byte) (int, error) {
	select {
	case <-s.over:
		return 0, errSlow
	case <-time.After(20 * time.Millisecond):
		return s.from.Read(b)
	}
}
