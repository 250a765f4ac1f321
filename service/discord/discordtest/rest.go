package discordtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Fault is the server's misbehaviour in one call.
type Fault struct {
	// Status is the HTTP status of an answer without any effect. With Late, the effect happens before this answer. 0 means
	// no such answer.
	Status int
	Late   bool
	// Code and Say are the error code and the message of the answer. If Raw is set, Say is the whole answer.
	Code int
	Say  string
	Raw  bool
	// RetryAfter is the pause of an answer 429, in seconds. Global means that it holds for all routes.
	RetryAfter float64
	Global     bool
	// Drop cuts the connection before the effect, Lose after it, and Half in the middle of the answer.
	Drop, Lose, Half bool
}

// problem is an answer that refuses a request.
type problem struct {
	status, code int
	text         string
}

// bucket counts the requests of a window.
type bucket struct {
	used  int
	until time.Time
}

// call is a request of a bot.
type call struct {
	r     *http.Request
	route string
	ids   []string
	json  map[string]any
	file  *File
}

var aMention = regexp.MustCompile(`@everyone|@here|<@[!&]?[0-9]+>`)

// pings returns the number of mentions in a text that notify somebody.
func (c *call) pings() int {
	if allowed, ok := c.json["allowed_mentions"].(map[string]any); ok {
		if parse, ok := allowed["parse"].([]any); ok && len(parse) == 0 {
			return 0
		}
	}
	return len(aMention.FindAllString(c.text("content"), -1))
}

func (c *call) text(name string) string { t, _ := c.json[name].(string); return t }

var (
	version = regexp.MustCompile(`^/api/v(9|10)/`)
	anID    = regexp.MustCompile(`^[0-9]{2,20}$`)
)

// ServeHTTP serves the REST API below /api/v10, the gateway, and files below /cdn.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.origin = r.Host
	s.mu.Unlock()
	switch {
	case strings.HasPrefix(r.URL.Path, "/cdn/"):
		s.serveFile(w, r)
		return
	case r.URL.Path == "/gateway", r.URL.Path == "/gateway/", strings.HasPrefix(r.URL.Path, "/resume"):
		s.serveGateway(w, r)
		return
	case !version.MatchString(r.URL.Path):
		http.NotFound(w, r)
		return
	}
	c := &call{r: r}
	c.route, c.ids = routeOf(r)
	f := s.count(c.route)
	switch {
	case f.Drop:
		panic(http.ErrAbortHandler) // net/http's way to cut a connection
	case f.Late:
	case f.Status != 0:
		answerFault(w, f)
		return
	}
	if err := c.read(); err != nil {
		answer(w, nil, &problem{http.StatusBadRequest, 50109, err.Error()})
		return
	}
	result, p := s.do(c, w.Header())
	switch {
	case f.Lose:
		panic(http.ErrAbortHandler)
	case f.Late:
		answerFault(w, f)
		return
	case f.Half:
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"id":"1`)
		_ = http.NewResponseController(w).Flush() // an error does not matter, because the connection is cut next
		panic(http.ErrAbortHandler)
	}
	answer(w, result, p)
}

// routeOf returns the route of a request and its ids.
func routeOf(r *http.Request) (route string, ids []string) {
	parts := strings.Split(version.ReplaceAllString(r.URL.Path, ""), "/")
	for i, part := range parts {
		if anID.MatchString(part) || i > 0 && (parts[i-1] == "reactions" || i == 2 && parts[0] == "interactions") {
			ids = append(ids, part)
			parts[i] = "{}"
		}
	}
	return r.Method + " /" + strings.Join(parts, "/"), ids
}

func (s *Server) count(route string) (f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.calls[route]
	s.calls[route]++
	s.wake()
	if s.Fault != nil {
		f = s.Fault(route, n)
	}
	return f
}

func answerFault(w http.ResponseWriter, f Fault) {
	if f.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.FormatFloat(f.RetryAfter, 'f', -1, 64))
	}
	if f.Raw {
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Say) // fails only if the client has disconnected
		return
	}
	body := map[string]any{"code": f.Code, "message": f.Say}
	if f.Status == http.StatusTooManyRequests {
		body["retry_after"], body["global"] = f.RetryAfter, f.Global
		w.Header().Set("X-RateLimit-Scope", "user")
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(f.Status)
	_, _ = w.Write(encode(body)) // fails only if the client has disconnected
}

func answer(w http.ResponseWriter, result any, p *problem) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case p != nil:
		body := map[string]any{"code": p.code, "message": p.text}
		if p.status == http.StatusTooManyRequests {
			after, _ := strconv.ParseFloat(w.Header().Get("Retry-After"), 64) // this server wrote the header
			body["retry_after"], body["global"] = after, false
		}
		w.WriteHeader(p.status)
		_, _ = w.Write(encode(body)) // fails only if the client has disconnected
	case result == nil:
		w.WriteHeader(http.StatusNoContent)
	default:
		_, _ = w.Write(encode(result)) // fails only if the client has disconnected
	}
}

// read reads the body as JSON or as a form.
func (c *call) read() error {
	if !strings.HasPrefix(c.r.Header.Get("Content-Type"), "multipart/") {
		b, err := io.ReadAll(c.r.Body)
		if err == nil && len(b) > 0 {
			err = json.Unmarshal(b, &c.json)
		}
		return err
	}
	if err := c.r.ParseMultipartForm(64 << 20); err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(c.r.FormValue("payload_json")), &c.json); err != nil {
		return err
	}
	for _, h := range c.r.MultipartForm.File["files[0]"] {
		f, err := h.Open()
		if err != nil {
			return err
		}
		b, err := io.ReadAll(f)
		if err != nil {
			return err
		}
		c.file = &File{Name: h.Filename, Data: b}
	}
	return nil
}

func bare(token string) string { return strings.TrimPrefix(token, "Bot ") }

// do handles a request. A nil result is an empty answer.
func (s *Server) do(c *call, h http.Header) (result any, p *problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer s.wake()
	if c.route == "POST /interactions/{}/{}/callback" {
		return nil, s.acknowledge(c)
	}
	if token, ok := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bot "); !ok || s.token == "" || token != s.token {
		return nil, &problem{http.StatusUnauthorized, 0, "401: Unauthorized"}
	}
	if !strings.HasPrefix(c.r.Header.Get("User-Agent"), "DiscordBot (") {
		return nil, &problem{http.StatusForbidden, 40333, "internal network error"}
	}
	if p := s.spend(c, h); p != nil {
		return nil, p
	}
	if strings.HasPrefix(c.route, "GET /channels/") || strings.Contains(c.route, " /channels/") {
		return s.doChannel(c)
	}
	switch c.route {
	case "GET /users/{}", "GET /users/@me":
		return map[string]any{"id": Self, "username": "perlica", "bot": true}, nil
	case "GET /users/@me/guilds":
		list := []any{}
		for id, g := range s.guilds {
			list = append(list, map[string]any{"id": id, "name": g.name, "permissions": strconv.FormatUint(g.right, 10)})
		}
		return list, nil
	case "GET /applications/@me":
		return map[string]any{"id": Application, "name": "Perlica", "flags": s.flags,
			"interactions_endpoint_url": s.endpoint}, nil
	case "GET /gateway", "GET /gateway/bot":
		return map[string]any{"url": "ws://" + s.origin + "/gateway", "shards": 1, "session_start_limit": map[string]any{
			"total": 1000, "remaining": max(s.starts, 0), "reset_after": 3_600_000, "max_concurrency": 1}}, nil
	}
	return nil, &problem{http.StatusNotFound, 0, "404: Not Found"}
}

// spend counts a request in its bucket and writes the headers of the limit. Each channel has buckets of its own.
func (s *Server) spend(c *call, h http.Header) *problem {
	if s.limit == 0 {
		return nil
	}
	key := c.route
	if len(c.ids) > 0 {
		key += " " + c.ids[0]
	}
	now := time.Now()
	b := s.buckets[key]
	if b == nil || now.After(b.until) {
		b = &bucket{until: now.Add(s.window)}
		s.buckets[key] = b
	}
	after := strconv.FormatFloat(time.Until(b.until).Seconds(), 'f', 3, 64)
	h.Set("X-RateLimit-Bucket", "bucket of "+c.route)
	h.Set("X-RateLimit-Limit", strconv.Itoa(s.limit))
	h.Set("X-RateLimit-Reset-After", after)
	h.Set("X-RateLimit-Remaining", strconv.Itoa(max(s.limit-b.used-1, 0)))
	if b.used++; b.used > s.limit {
		s.calls["429"]++
		h.Set("Retry-After", after)
		h.Set("X-RateLimit-Scope", "user")
		return &problem{http.StatusTooManyRequests, 0, "You are being rate limited."}
	}
	return nil
}

// acknowledge ends a press.
func (s *Server) acknowledge(c *call) *problem {
	at := s.presses[c.ids[0]]
	kind, _ := c.json["type"].(float64)
	switch {
	case at == nil || at.token != c.ids[1] || time.Now().After(at.until):
		return &problem{http.StatusNotFound, 10062, "Unknown interaction"}
	case at.acked:
		return &problem{http.StatusBadRequest, 40060, "Interaction has already been acknowledged."}
	case kind != 6:
		return &problem{http.StatusBadRequest, 50035, "Invalid Form Body"}
	}
	at.acked = true
	s.pressed = append(s.pressed, c.ids[0])
	return nil
}

// doChannel handles a request for a channel.
func (s *Server) doChannel(c *call) (result any, p *problem) {
	at := s.place(c.ids[0])
	if at.denied != 0 {
		status := http.StatusForbidden
		if at.denied < 50000 {
			status = http.StatusNotFound
		}
		return nil, &problem{status, at.denied, "refused by the test"}
	}
	var m *Message
	if len(c.ids) > 1 {
		if m = s.find(c.ids[0], c.ids[1]); m == nil || m.Removed {
			return nil, &problem{http.StatusNotFound, 10008, "Unknown Message"}
		}
	}
	switch c.route {
	case "GET /channels/{}":
		return map[string]any{"id": c.ids[0], "type": at.kind, "guild_id": at.guild}, nil
	case "GET /channels/{}/messages":
		return s.history(c, at), nil
	case "GET /channels/{}/messages/{}":
		return s.object(m, s.flags != 0 || s.shows(m)), nil
	case "POST /channels/{}/messages":
		return s.post(c, at)
	case "PATCH /channels/{}/messages/{}":
		return s.patch(c, m)
	case "DELETE /channels/{}/messages/{}":
		m.Removed = true
		return nil, nil
	case "POST /channels/{}/typing":
		return nil, nil
	case "PUT /channels/{}/messages/{}/reactions/{}/@me":
		m.Reactions = append(m.Reactions, c.ids[2])
		return nil, nil
	}
	return nil, &problem{http.StatusMethodNotAllowed, 0, "405: Method Not Allowed"}
}

// history returns the messages after an id, the newest first.
func (s *Server) history(c *call, at *place) any {
	limit, _ := strconv.Atoi(c.r.FormValue("limit")) // 0 if it is not a number
	after := number(c.r.FormValue("after"))
	list := []any{}
	for _, m := range at.messages {
		if number(m.ID) > after && !m.Removed && len(list) < min(max(limit, 1), 100) {
			list = append(list, s.object(m, s.flags != 0 || s.shows(m)))
		}
	}
	slices.Reverse(list)
	return list
}

// checkMessage refuses the parameters that Discord refuses.
func checkMessage(c *call) ([]Button, *problem) {
	const most, longest = 2000, 100
	invalid := &problem{http.StatusBadRequest, 50035, "Invalid Form Body"}
	if utf8.RuneCountInString(c.text("content")) > most {
		return nil, invalid
	}
	var buttons []Button
	rows, _ := c.json["components"].([]any)
	ids := map[string]bool{}
	for _, row := range rows {
		row, _ := row.(map[string]any)
		list, _ := row["components"].([]any)
		if len(rows) > 5 || len(list) == 0 || len(list) > 5 {
			return nil, invalid
		}
		for _, b := range list {
			b, _ := b.(map[string]any)
			label, _ := b["label"].(string)
			data, _ := b["custom_id"].(string)
			if label == "" || utf8.RuneCountInString(label) > 80 || data == "" || len(data) > longest || ids[data] {
				return nil, invalid
			}
			ids[data] = true
			buttons = append(buttons, Button{label, data})
		}
	}
	if c.text("content") == "" && c.file == nil && len(buttons) == 0 {
		return nil, &problem{http.StatusBadRequest, 50006, "Cannot send an empty message"}
	}
	return buttons, nil
}

// post sends a message of the bot.
func (s *Server) post(c *call, at *place) (any, *problem) {
	buttons, p := checkMessage(c)
	if p != nil {
		return nil, p
	}
	most := s.MaxFile
	if most == 0 {
		most = 10 << 20
	}
	if c.file != nil && int64(len(c.file.Data)) > most {
		return nil, &problem{http.StatusRequestEntityTooLarge, 40005, "Request entity too large"}
	}
	nonce := fmt.Sprint(c.json["nonce"])
	if len(nonce) > 25 {
		return nil, &problem{http.StatusBadRequest, 50035, "Invalid Form Body"}
	}
	if id := s.nonces[nonce]; id != "" && c.json["enforce_nonce"] == true {
		return s.object(s.find(c.ids[0], id), true), nil
	}
	m := &Message{ID: s.newID(), Channel: c.ids[0], Author: Self, Text: c.text("content"), Buttons: buttons, File: c.file,
		Pings: c.pings()}
	if flags, ok := c.json["flags"].(float64); ok {
		m.Flags = int(flags)
	}
	if ref, ok := c.json["message_reference"].(map[string]any); ok {
		m.ReplyTo, _ = ref["message_id"].(string)
		if s.find(c.ids[0], m.ReplyTo) == nil {
			if ref["fail_if_not_exists"] != false {
				return nil, &problem{http.StatusBadRequest, 50035, "Invalid Form Body: Unknown message"}
			}
			m.ReplyTo = ""
		}
	}
	if c.json["enforce_nonce"] == true {
		s.nonces[nonce] = m.ID
	}
	at.messages = append(at.messages, m)
	s.sent = append(s.sent, m.Channel+":"+m.ID)
	s.dispatchMessage("MESSAGE_CREATE", m)
	return s.object(m, true), nil
}

// patch edits a message of the bot.
func (s *Server) patch(c *call, m *Message) (any, *problem) {
	if m.Author != Self {
		return nil, &problem{http.StatusForbidden, 50005, "Cannot edit a message authored by another user"}
	}
	buttons, p := checkMessage(c)
	if p != nil {
		return nil, p
	}
	m.Edits = append(m.Edits, m.Text)
	m.Text, m.Pings = c.text("content"), c.pings()
	if c.json["components"] != nil {
		m.Buttons = buttons
	}
	s.dispatchMessage("MESSAGE_UPDATE", m)
	return s.object(m, true), nil
}

// serveFile serves a file at an address that has not expired.
func (s *Server) serveFile(w http.ResponseWriter, r *http.Request) {
	f := s.count("GET /cdn/{}")
	if f.Drop {
		panic(http.ErrAbortHandler)
	}
	s.mu.Lock()
	file, ok := s.files[strings.TrimPrefix(r.URL.Path, "/cdn/")]
	expired := r.FormValue("ex") != fmt.Sprint(int64(s.skew))
	s.mu.Unlock()
	switch {
	case r.Header.Get("Authorization") != "": // the token must not leave the API
		w.WriteHeader(http.StatusTeapot)
	case expired || !ok:
		w.WriteHeader(http.StatusNotFound)
	case f.Half:
		w.Header().Set("Content-Length", strconv.Itoa(len(file.Data)+1))
		_, _ = w.Write(file.Data)
		_ = http.NewResponseController(w).Flush() // an error does not matter, because the connection is cut next
		panic(http.ErrAbortHandler)
	default:
		_, _ = w.Write(file.Data) // fails only if the client has disconnected
	}
}
