package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/perlica/perlica/provider/agentside"
)

// These limits protect against an endless list of models.
const (
	listTimeout = 25 * time.Second
	maxPages    = 20
	maxPage     = 16 << 20 // bytes
)

// modelOption is the config option that selects the model.
const modelOption = "model"

// options returns the session's config options: the model, with the known models as values. The caller holds
// mu.
func (s *session) options() []object {
	values := []object{}
	for _, name := range s.models {
		values = append(values, object{"value": name, "name": name})
	}
	if !slices.Contains(s.models, s.model) {
		values = append([]object{{"value": s.model, "name": s.model}}, values...)
	}
	return []object{{"id": modelOption, "name": "Model", "category": "model", "type": "select", "currentValue": s.model,
		"options": values}}
}

// setOption answers session/set_config_option. It accepts any model name, because only the API knows the
// valid names.
func (a *agent) setOption(m agentside.Message) {
	var p struct{ SessionID, ConfigID, Value string }
	err := json.Unmarshal(m.Params, &p)
	a.mu.Lock()
	s := a.sessions[p.SessionID]
	if err != nil || s == nil || p.ConfigID != modelOption || strings.TrimSpace(p.Value) == "" {
		a.mu.Unlock()
		a.conn.Refuse(m.ID, &agentside.Error{
			Code: agentside.CodeInvalidParams, Message: "there is no such session, option or value",
		})
		return
	}
	s.model = p.Value
	answer := object{"configOptions": s.options()}
	a.mu.Unlock()
	a.sendResult(m.ID, answer)
}

// listModels answers _perlica.dev/model/list: it asks the API for the available models.
func (a *agent) listModels(ctx context.Context, m agentside.Message) {
	a.mu.Lock()
	s := a.sessions[sessionID(m.Params)]
	a.mu.Unlock()
	if s == nil {
		a.conn.Refuse(m.ID, &agentside.Error{Code: agentside.CodeNotFound, Message: "there is no such session"})
		return
	}
	a.runs.Go(func() {
		ctx, cancel := context.WithTimeout(ctx, listTimeout)
		defer cancel()
		names, err := a.models(ctx, s.id)
		if err != nil {
			a.conn.Refuse(m.ID, &agentside.Error{
				Code: agentside.CodeInternal, Message: "the models cannot be listed: " + err.Error(),
			})
			return
		}
		a.mu.Lock()
		s.models = names
		answer := object{"configOptions": s.options()}
		a.mu.Unlock()
		a.sendResult(m.ID, answer)
	})
}

// models returns the names of all models of the API, in the API's order.
func (a *agent) models(ctx context.Context, session string) (names []string, err error) {
	m := mappings[a.settings.API]
	for next := ""; ; {
		b, err := a.getPage(ctx, session, m.models+next)
		if err != nil {
			return nil, err
		}
		page, after, err := readModels(b)
		if err != nil {
			return nil, err
		}
		names = append(names, page...)
		if !strings.Contains(m.models, "?") || after == "" || after == next { // without a query the API has one page
			return names, nil
		}
		if next = after; len(names) > maxPages*1000 {
			return nil, errors.New("the list does not end")
		}
	}
}

// getPage makes one recorded GET request and returns the body.
func (a *agent) getPage(ctx context.Context, session, path string) ([]byte, error) {
	s, err := a.withKey(ctx, a.settings)
	if err != nil {
		return nil, err
	}
	x := newExchange(s, nil)
	x.method, x.url = http.MethodGet, s.base()+path
	x.header = slices.DeleteFunc(x.header, func(f field) bool { return oneOf("Content-Length", "Content-Type")(f.Name) })
	x.header[0].Value = "application/json"
	if err := a.announceRequest(ctx, session, x); err != nil {
		return nil, err
	}
	resp, err := a.doExchange(ctx, session, x)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // reading reports the errors
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	a.receivedEnd(session, err)
	switch {
	case resp.StatusCode != http.StatusOK, unreadable(resp.Header) != "" && !json.Valid(b):
		return nil, errors.New(judge(s, resp, b).message)
	case err != nil:
		return nil, errors.New("the answer broke: " + a.hidden().text(err.Error()))
	}
	return b, nil
}

// readModels reads a page of a list in the form of openAI and Anthropic, or of Gemini. The result "next" is the end of
// the query for the next page. It is empty after the last page.
func readModels(b []byte) (names []string, next string, err error) {
	var v struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
		HasMore bool   `json:"has_more"`
		LastID  string `json:"last_id"`
		Models  []struct {
			Name string   `json:"name"`
			Can  []string `json:"supportedGenerationMethods"`
		} `json:"models"`
		NextPage string `json:"nextPageToken"`
	}
	if err := json.Unmarshal(b, &v); err != nil || v.Data == nil && v.Models == nil {
		return nil, "", fmt.Errorf("what came is no list of models: %.200q", b)
	}
	for _, m := range v.Data {
		names = append(names, m.ID)
	}
	for _, m := range v.Models {
		if v.Data == nil && (m.Can == nil || slices.Contains(m.Can, "generateContent")) {
			names = append(names, strings.TrimPrefix(m.Name, "models/"))
		}
	}
	switch {
	case v.HasMore && v.LastID != "":
		next = "&after_id=" + url.QueryEscape(v.LastID)
	case v.NextPage != "":
		next = "&pageToken=" + url.QueryEscape(v.NextPage)
	}
	return names, next, nil
}
