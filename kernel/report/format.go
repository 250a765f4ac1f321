package report

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"unicode/utf8"

	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/store"
)

// FormatOptions are the options of WriteHTML, WriteOTel and WriteCloudEvents.
type FormatOptions struct {
	// Mask replaces the secrets in a text. Nil means that texts are not masked.
	Mask func(string) string
	// Version is Perlica's version, for formats that name their writer.
	Version string
}

func (o FormatOptions) mask(text string) string {
	if o.Mask == nil {
		return text
	}
	return o.Mask(text)
}

// inputs yields the input of each run that q selects, oldest first. Limits of time apply to the input.
func inputs(ctx context.Context, log *store.Reader, q event.Query) iter.Seq2[event.Event, error] {
	q.Types, q.Class = []event.Type{event.MessageReceived}, event.Fact
	return log.Events(ctx, q)
}

// cloudEventPrefix begins the types of exported events. CloudEvents requires the reversed name of the domain that
// defines a type.
const cloudEventPrefix = "com.github.perlica."

// cloudEvent is an event in the JSON format of CloudEvents 1.0. The name of an extension attribute may have at most 20
// lower-case letters and digits. A number that may exceed 32 bits must be a string.
type cloudEvent struct {
	SpecVersion string `json:"specversion"`
	ID          string `json:"id"`
	Source      string `json:"source"`
	Type        string `json:"type"`
	Subject     string `json:"subject,omitempty"`
	Time        string `json:"time"`
	ContentType string `json:"datacontenttype,omitempty"`
	// TraceParent is the run's span, as WriteOTel writes it.
	TraceParent string `json:"traceparent,omitempty"`

	Seq          string `json:"perlicaseq"`
	Class        string `json:"perlicaclass"`
	Actor        string `json:"perlicaactor,omitempty"`
	Writer       string `json:"perlicawriter,omitempty"`
	Context      string `json:"perlicacontext,omitempty"`
	Session      string `json:"perlicasession,omitempty"`
	Conversation string `json:"perlicaconversation,omitempty"`
	Interaction  string `json:"perlicainteraction,omitempty"`
	Input        string `json:"perlicainput,omitempty"`
	Length       string `json:"perlicalength"`
	SHA256       string `json:"perlicasha256"`
	Leaf         string `json:"perlicaleaf"`
	Withheld     string `json:"perlicawithheld,omitempty"` // "masked", "absent" or "damaged"
	Damage       string `json:"perlicadamage,omitempty"`

	Data   json.RawMessage `json:"data,omitempty"`
	Base64 []byte          `json:"data_base64,omitempty"`
}

// WriteCloudEvents writes the events that q selects as CloudEvents 1.0 in JSON, one per line. It omits a whole payload
// if a part of it is masked, because the hash covers the whole payload. It also omits missing payloads. It reads the
// log once and needs little memory.
func WriteCloudEvents(ctx context.Context, w io.Writer, log *store.Reader, q event.Query, opt FormatOptions) error {
	source, err := log.Origin(ctx)
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for e, err := range log.Events(ctx, q) {
		if err != nil {
			return errors.Join(err, out.Flush())
		}
		if err := enc.Encode(newCloudEvent(e, source, opt)); err != nil {
			return err
		}
	}
	return out.Flush()
}

func newCloudEvent(e event.Event, source string, opt FormatOptions) cloudEvent {
	c := cloudEvent{
		SpecVersion: "1.0", ID: e.ID, Source: source, Type: cloudEventPrefix + string(e.Type), Subject: string(e.Run),
		Time: e.Time.UTC().Format("2006-01-02T15:04:05.000000000Z"),
		Seq:  fmt.Sprint(int64(e.Seq)), Class: string(e.Class), Actor: e.Actor, Writer: e.Writer, Context: e.Context,
		Session: string(e.Session), Conversation: string(e.Conversation), Interaction: string(e.Interaction),
		Input:  string(e.Input),
		Length: fmt.Sprint(e.PayloadLen), SHA256: fmt.Sprintf("%x", e.PayloadSHA256), Leaf: e.LeafHash.String(),
	}
	if e.Run == "" {
		c.Subject = string(e.Session)
	} else {
		c.TraceParent = "00-" + traceID(e.Refs) + "-" + spanID(e.Run, "run", "") + "-01"
	}
	switch {
	case e.Damage() != nil:
		c.Withheld, c.Damage = event.Damaged, e.Damage().Row().Text
	case e.Payload == nil:
		c.Withheld = "absent"
	case opt.mask(string(e.Payload)) != string(e.Payload):
		c.Withheld = "masked"
	case len(e.Payload) == 0:
	case json.Valid(e.Payload):
		c.ContentType, c.Data = "application/json", e.Payload
	case utf8.Valid(e.Payload):
		c.ContentType = "text/plain"
		c.Data, _ = json.Marshal(string(e.Payload)) // a string can always be encoded
	default:
		c.ContentType, c.Base64 = "application/octet-stream", e.Payload
	}
	return c
}
