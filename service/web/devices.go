package web

import (
	"errors"
	"net/http"

	"github.com/perlica/perlica/service/access"
	"github.com/perlica/perlica/service/web/device"
)

// deviceList are the browsers and programs that may come in.
func (s *Server) deviceList(w http.ResponseWriter, r *request) error {
	if err := r.only(); err != nil {
		return err
	}
	list, err := s.opt.Devices.List(r.Context())
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string]any{"devices": list})
}

// revoke ends what a device may do. Each may give up its own rights; those of others take admin.
func (s *Server) revoke(w http.ResponseWriter, r *request) error {
	if err := r.only(); err != nil {
		return err
	}
	var body struct{}
	if err := r.decode(&body); err != nil {
		return err
	}
	id := r.PathValue("id")
	if id != r.visitor.ID && !r.visitor.Rights.Has(access.Admin) {
		return forbidden.is(`this takes the right "admin", but for one's own device`)
	}
	if _, ok := s.opt.Devices.Find(id); !ok { // a name is not taken for an id
		return notFound.is("there is no such device")
	}
	gone, err := s.opt.Devices.Revoke(r.Context(), id, r.visitor.Label())
	if errors.Is(err, device.ErrNoDevice) {
		return notFound.is("there is no such device")
	}
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string]string{"id": gone.ID, "name": gone.Name})
}
