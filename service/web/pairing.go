package web

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/perlica/perlica/eventlog/strict"
	"github.com/perlica/perlica/interaction"
	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/web/device"
)

// pairingWait limits the time of a request that waits for the end of a pairing.
const pairingWait = 25 * time.Second

func (s *Server) pairingBegin(w http.ResponseWriter, r *request) error {
	var body struct {
		Code string `json:"code"`
	}
	if err := r.decode(&body); err != nil {
		return err
	}
	handle, err := s.opt.Devices.Begin(r.Context(), body.Code, s.opt.Devices.From(r.Request))
	if err != nil {
		return notPaired(err)
	}
	// The browser may hold data of another server with the same address. This header makes it delete them.
	w.Header().Set("Clear-Site-Data", `"storage"`)
	return reply(w, http.StatusOK, map[string]string{"pairing": handle})
}

func (s *Server) pairing(w http.ResponseWriter, r *request) error {
	var body struct {
		Pairing string          `json:"pairing"`
		Name    string          `json:"name"`
		Key     json.RawMessage `json:"key"`
	}
	if err := r.decode(&body); err != nil {
		return err
	}
	// Ignore unknown members, because a browser adds some to a key.
	var key device.JWK
	if err := strict.Unmarshal(body.Key, &key); err != nil {
		return badRequest.problem(badKey)
	}
	word, err := s.opt.Devices.Ask(r.Context(), body.Pairing, body.Name, key, s.opt.Devices.From(r.Request))
	if err != nil {
		return notPaired(err)
	}
	return reply(w, http.StatusAccepted, map[string]string{"pairing": body.Pairing, "word": word})
}

func (s *Server) pairingState(w http.ResponseWriter, r *request) error {
	ctx, cancel := context.WithTimeout(r.Context(), pairingWait)
	defer cancel()
	stop := context.AfterFunc(s.hard, cancel)
	defer stop()
	go func() {
		select {
		case <-s.stopping:
			cancel()
		case <-ctx.Done():
		}
	}()
	return reply(w, http.StatusOK, s.opt.Devices.Await(ctx, r.PathValue("pairing")))
}

// notPaired returns the problem that describes a failed pairing.
func notPaired(err error) error {
	if errors.Is(err, device.ErrKey) {
		return badRequest.wrap(err)
	}
	if p := asProblem(err); p.Status == http.StatusServiceUnavailable {
		return p
	}
	return forbidden.wrap(err)
}

// signed verifies the signature of an answer with the device's key and adds it to the answer.
func signed(r *request, q interaction.Question, body answerBody, a *interaction.Answer) error {
	err := r.visitor.CheckAnswer(device.Answer{Question: string(q.ID), Digest: body.Digest, Option: body.Option,
		Signature: body.Signature})
	if err != nil {
		return forbidden.problem(unsignedAnswer.With(err))
	}
	a.Digest, a.Signature, a.Key = body.Digest, body.Signature, base64.StdEncoding.EncodeToString(r.visitor.Key)
	return nil
}

// deviceList lists the paired browsers and programs.
func (s *Server) deviceList(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters(); err != nil {
		return err
	}
	list, err := s.opt.Devices.List(r.Context())
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string]any{"devices": list})
}

// revoke ends the rights of a device. A device may revoke itself; revoking another device requires
// the right admin.
func (s *Server) revoke(w http.ResponseWriter, r *request) error {
	if err := r.checkParameters(); err != nil {
		return err
	}
	var body struct{}
	if err := r.decode(&body); err != nil {
		return err
	}
	id := r.PathValue("id")
	if id != r.visitor.ID && !r.visitor.Rights.Has(access.Admin) {
		return forbidden.problem(needsAdmin)
	}
	// The id must be exact; a name is not accepted.
	if _, ok := s.opt.Devices.Find(id); !ok {
		return notFound.problem(noDevice)
	}
	gone, err := s.opt.Devices.Revoke(r.Context(), id, r.visitor.Label())
	if errors.Is(err, device.ErrNoDevice) {
		return notFound.problem(noDevice)
	}
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string]string{"id": gone.ID, "name": gone.Name})
}
