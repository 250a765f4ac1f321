package report

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dustin/go-humanize/english"

	"github.com/perlica/perlica/provider"
)

// summarizeFrame describes a line of the protocol in a few words.
func summarizeFrame(line []byte) string {
	if u, ok := provider.ParseUpdate(line, ""); ok {
		switch {
		case u.Text != "":
			return u.Kind + ": " + beginning(u.Text)
		case u.Block != nil:
			return u.Kind + ": " + beginning(u.Block.String())
		case u.Title != "":
			return u.Kind + ": " + beginning(u.Title)
		case u.Tool != nil:
			return u.Kind + ": " + strings.Join(strings.Fields(u.Tool.Title+" "+string(u.Tool.Status)), " ")
		case u.Usage != nil:
			return fmt.Sprintf("%s: %d of %d tokens", u.Kind, u.Usage.Used, u.Usage.Size)
		case u.Plan != nil:
			return u.Kind + ": " + english.Plural(len(u.Plan), "step", "")
		}
		return u.Kind
	}
	var v struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(line, &v) != nil {
		return beginning(string(line))
	}
	switch {
	case v.Method != "" && v.ID != nil:
		return v.Method + " #" + string(v.ID)
	case v.Method != "":
		return v.Method
	case v.Error != nil:
		return "error to #" + string(v.ID) + ": " + beginning(string(v.Error))
	case v.ID != nil:
		return "answer to #" + string(v.ID) + ": " + beginning(string(v.Result))
	}
	return beginning(string(line))
}
