// Package flow decides about the steps of a flow.
//
// A flow is a graph of single calls and of questions to people, written in a TOML file. The graph is known before the
// flow starts. The events of a log alone decide whether a step is ready, skipped or failed. The input id of a step
// follows from the id of the flow run and the step. So a second process or a restart makes no second call. The package
// never repeats a call and starts no command. It makes no call itself: Driver.Answer answers one input.
//
// No event says that a step has begun, because the intent of the step's input says so. After a step the driver records
// one flow.step.decided and does not wait for the disk. The lock of the flow run lets one process at a time decide.
// Even without the lock there is no second call, because the log accepts each intent and each decision only once.
//
// The goroutine that calls Driver.Run owns the state. Each running step has a goroutine, which sends its result to the
// owner.
package flow

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"github.com/perlica/perlica/eventlog/message"
)

// These are the limits of a file.
const (
	maxFile     = 1 << 20 // bytes
	mostSteps   = 1000
	maxItems    = 10_000
	usualItems  = 50
	maxParallel = 64
	maxDeep     = 4 // flows inside of flows
)

// Input is an input of a flow. An input without a default must be given.
type Input struct {
	Description string  `toml:"description"`
	Default     *string `toml:"default"`
}

// Step is a call (Text), a question to a person (Ask) or a flow inside of the flow (Flow).
type Step struct {
	ID          string            `toml:"id"`
	Needs       []string          `toml:"needs"`
	When        string            `toml:"when"`
	ForEach     string            `toml:"for_each"`
	Parallel    int               `toml:"parallel"`
	MaxItems    int               `toml:"max_items"`
	OnFailure   string            `toml:"on_failure"`
	OnSkipped   string            `toml:"on_skipped"`
	Text        string            `toml:"text"`
	Provider    string            `toml:"provider"`
	Permissions string            `toml:"permissions"`
	Schema      string            `toml:"schema"`  // a file with a JSON Schema for the answer
	Session     string            `toml:"session"` // the step whose session this step continues
	Ask         string            `toml:"ask"`
	Options     []string          `toml:"options"`
	Flow        string            `toml:"flow"` // the file of another flow
	Inputs      map[string]string `toml:"inputs"`

	// SchemaText is the content of the file Schema.
	SchemaText []byte `toml:"-"`

	when, forEach *expression
	text          *template
	inputs        map[string]*template
	inner         *Flow
	before        map[string]bool // the steps that this step needs, directly or not
}

// loops reports whether the step has an item for each element of a list.
func (s *Step) loops() bool { return s.ForEach != "" }

// Flow is a checked file.
type Flow struct {
	Name        string           `toml:"name"`
	Description string           `toml:"description"`
	Inputs      map[string]Input `toml:"inputs"`
	Steps       []*Step          `toml:"step"`

	// Text is the file's text. Digest is the SHA-256 of the text and of the files that it names, in hex.
	Text   string `toml:"-"`
	Digest string `toml:"-"`
	// Files has the SHA-256 of the file and of each file that it names, in hex, by absolute path. Load sets it.
	Files map[string]string `toml:"-"`

	places map[string]int // the place of each step in Steps
}

// A fileError says why a file is not a flow.
type fileError struct {
	File string // may be empty
	Err  error
}

func (e *fileError) Error() string { return e.Tell().Text }

// Tell returns the error's sentence.
func (e *fileError) Tell() *message.Text {
	if e.File == "" {
		return message.Of(e.Err)
	}
	return inPlace.With(e.File, e.Err)
}

// Unwrap returns the fault.
func (e *fileError) Unwrap() error { return e.Err }

// Usage says that the fault is the user's.
func (e *fileError) Usage() bool { return true }

// Load reads and checks the flow in a file, and the files that it names. The error is a *fileError.
func Load(path string) (*Flow, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return nil, &fileError{path, err}
	}
	files := map[string]string{}
	f, err := load(absolute, 0, files)
	if err != nil {
		return nil, &fileError{path, err}
	}
	f.Files = files
	return f, nil
}

func load(path string, depth int, files map[string]string) (*Flow, error) {
	dir := filepath.Dir(path)
	read := func(path string) ([]byte, error) {
		b, err := readBounded(path)
		sum := sha256.Sum256(b)
		digest := hex.EncodeToString(sum[:])
		if known, ok := files[path]; err == nil && ok && known != digest {
			err = errFileChanged.With(path)
		}
		files[path] = digest
		return b, err
	}
	text, err := read(path)
	if err != nil {
		return nil, err
	}
	return parse(text, func(name string) ([]byte, error) { return read(filepath.Join(dir, name)) },
		func(name string) (*Flow, error) {
			if depth == maxDeep {
				return nil, errNestedFlows.With(maxDeep)
			}
			f, err := load(filepath.Join(dir, name), depth+1, files)
			if err != nil {
				err = &fileError{name, err}
			}
			return f, err
		})
}

// readBounded reads a file of at most maxFile bytes.
func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, errors.Unwrap(err)
	case !info.Mode().IsRegular():
		return nil, errNotFile
	case info.Size() > maxFile:
		return nil, errLargeFile.With(info.Size(), maxFile)
	}
	b, err := os.ReadFile(path)
	if err == nil && len(b) > maxFile {
		return nil, errLargeFile.With(len(b), maxFile)
	}
	return b, cmp.Or(errors.Unwrap(err), err) // the caller adds the path
}

// parseAlone checks the text of a flow and reads no other file. The result is good for showing a flow and not for
// running it.
func parseAlone(text string) (*Flow, error) {
	f, err := parse([]byte(text), nil, nil)
	if err != nil {
		return nil, &fileError{"", inFlow.With(err)}
	}
	return f, nil
}

func parse(text []byte, read func(string) ([]byte, error), inner func(string) (*Flow, error)) (*Flow, error) {
	f := &Flow{Text: string(text), places: map[string]int{}}
	if err := decode(text, f); err != nil {
		return nil, err
	}
	if err := f.checkNames(); err != nil {
		return nil, err
	}
	for _, s := range f.Steps {
		if err := f.orderStep(s, nil); err != nil {
			return nil, err
		}
	}
	parts := sha256.New()
	parts.Write(text)
	for _, s := range f.Steps {
		if err := f.checkStep(s); err != nil {
			return nil, inStep.With(s.ID, err)
		}
		if s.Schema != "" && read != nil {
			b, err := read(s.Schema)
			if err != nil {
				return nil, inStep.With(s.ID, inPlace.With("schema "+s.Schema, err))
			}
			s.SchemaText = b
			fmt.Fprintf(parts, "\x00%s\x00%d\x00%s", s.Schema, len(b), b)
		}
		if s.Flow != "" && inner != nil {
			sub, err := inner(s.Flow)
			if err != nil {
				return nil, inStep.With(s.ID, err)
			}
			s.inner = sub
			fmt.Fprintf(parts, "\x00%s\x00%s", s.Flow, sub.Digest)
			if err := sub.checkGiven(s.Inputs); err != nil {
				return nil, inStep.With(s.ID, err)
			}
		}
	}
	f.Digest = hex.EncodeToString(parts.Sum(nil))
	return f, nil
}

// decode decodes TOML, with or without the byte order mark of a Windows editor. The error names the line.
func decode(text []byte, f *Flow) error {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	d := toml.NewDecoder(bytes.NewReader(text)).DisallowUnknownFields()
	err := d.Decode(f)
	var unknown *toml.StrictMissingError
	var bad *toml.DecodeError
	switch {
	case errors.As(err, &unknown) && len(unknown.Errors) > 0:
		row, _ := unknown.Errors[0].Position()
		return errUnknownKey.With(row, strings.Join(unknown.Errors[0].Key(), "."))
	case errors.As(err, &bad):
		row, _ := bad.Position()
		why := strings.TrimPrefix(err.Error(), "toml: ")
		// The decoder's words for a wrong type name types of Go.
		if key := strings.Join(bad.Key(), "."); key != "" && strings.HasPrefix(why, "cannot decode TOML ") {
			return errWrongType.With(row, key)
		}
		return errNotTOML.With(row, why)
	}
	return err
}

var (
	flowName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`) })
	stepName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,63}$`) })
)

// checkNames checks the names of the flow, its inputs and its steps.
func (f *Flow) checkNames() error {
	switch {
	case !flowName().MatchString(f.Name):
		return errName.With(f.Name)
	case len(f.Steps) == 0:
		return errNoSteps
	case len(f.Steps) > mostSteps:
		return errManySteps.With(len(f.Steps), mostSteps)
	}
	for name := range f.Inputs {
		if !stepName().MatchString(name) {
			return errInputName.With(name)
		}
	}
	for i, s := range f.Steps {
		if !stepName().MatchString(s.ID) {
			return errStepID.With(i+1, s.ID)
		}
		if _, ok := f.places[s.ID]; ok {
			return errSameID.With(s.ID)
		}
		f.places[s.ID] = i
	}
	return nil
}

// step returns a step by its id, or nil.
func (f *Flow) step(id string) *Step {
	if i, ok := f.places[id]; ok {
		return f.Steps[i]
	}
	return nil
}

// orderStep sets Step.before of the step s and of the steps that s needs. The parameter "path" has the ids of the
// steps that led to s, so orderStep finds steps that need each other.
func (f *Flow) orderStep(s *Step, path []string) error {
	if i := slices.Index(path, s.ID); i >= 0 {
		return errCycle.With(strings.Join(append(path[i:], s.ID), " → "))
	}
	if s.before != nil {
		return nil
	}
	before := map[string]bool{}
	for _, id := range s.Needs {
		need := f.step(id)
		if need == nil {
			return inStep.With(s.ID, inPlace.With("needs", errNoStep.With(id)))
		}
		if err := f.orderStep(need, append(path, s.ID)); err != nil {
			return err
		}
		before[id] = true
		for earlier := range need.before {
			before[earlier] = true
		}
	}
	s.before = before
	return nil
}

// checkStep checks one step and parses its expressions.
func (f *Flow) checkStep(s *Step) error {
	kinds := 0
	for _, set := range []bool{s.Text != "", s.Ask != "", s.Flow != ""} {
		if set {
			kinds++
		}
	}
	if kinds != 1 {
		return errOneKind
	}
	if err := s.checkKeys(); err != nil {
		return err
	}
	if err := f.checkSession(s); err != nil {
		return err
	}
	return f.parseStep(s)
}

// checkKeys checks the keys that do not depend on other steps.
func (s *Step) checkKeys() error {
	for key, set := range map[string]bool{"provider": s.Provider != "", "permissions": s.Permissions != "",
		"schema": s.Schema != "", "session": s.Session != "", "for_each": s.ForEach != ""} {
		if set && s.Text == "" {
			return errOtherStep.With(key, "text")
		}
	}
	switch {
	case !slices.Contains([]string{"", "ask", "reads", "deny", "allow"}, s.Permissions):
		return errChoice.With("permissions", "ask, reads, deny, allow", s.Permissions)
	case !slices.Contains([]string{"", "stop", "continue"}, s.OnFailure):
		return errChoice.With("on_failure", "stop, continue", s.OnFailure)
	case !slices.Contains([]string{"", "stop", "continue"}, s.OnSkipped):
		return errChoice.With("on_skipped", "stop, continue", s.OnSkipped)
	case s.Parallel < 0 || s.Parallel > maxParallel:
		return errRange.With("parallel", maxParallel)
	case s.MaxItems < 0 || s.MaxItems > maxItems:
		return errRange.With("max_items", maxItems)
	case (s.Parallel > 0 || s.MaxItems > 0) && s.ForEach == "":
		return errOtherStep.With("parallel, max_items", "for_each")
	case s.Ask != "" && (len(s.Options) == 0 || len(s.Options) > 20):
		return errOptions
	case s.Ask == "" && s.Options != nil:
		return errOtherStep.With("options", "ask")
	case s.Flow == "" && s.Inputs != nil:
		return errOtherStep.With("inputs", "flow")
	}
	for i, o := range s.Options {
		if strings.TrimSpace(o) != o || o == "" || len(o) > 100 || slices.Contains(s.Options[:i], o) {
			return errOption.With(o)
		}
	}
	s.Parallel, s.MaxItems = max(s.Parallel, 1), max(s.MaxItems, 0)
	if s.MaxItems == 0 {
		s.MaxItems = usualItems
	}
	return nil
}

// checkSession checks that the step of the session is a single call before s.
func (f *Flow) checkSession(s *Step) error {
	if s.Session == "" {
		return nil
	}
	of := f.step(s.Session)
	switch {
	case of == nil:
		return inPlace.With("session", errNoStep.With(s.Session))
	case !s.before[s.Session]:
		return inPlace.With("session", errNotNeeded.With(s.Session))
	case of.Text == "" || of.loops() || s.loops():
		return inPlace.With("session", errSingleCalls)
	case s.Provider != "" && s.Provider != of.Provider:
		return inPlace.With("session", errSameProvider.With(of.Provider))
	}
	return nil
}

// parseStep parses the expressions of a step and checks their names.
func (f *Flow) parseStep(s *Step) (err error) {
	sc := scope{flow: f, step: s}
	if s.When != "" {
		if s.when, err = sc.expression(s.When); err != nil {
			return inPlace.With("when", err)
		}
	}
	if s.ForEach != "" {
		if s.forEach, err = sc.expression(s.ForEach); err != nil {
			return inPlace.With("for_each", err)
		}
	}
	sc.item = s.loops()
	if s.text, err = sc.template(s.Text + s.Ask); err != nil { // one of the two is empty
		return err
	}
	s.inputs = map[string]*template{}
	for name, text := range s.Inputs {
		if s.inputs[name], err = sc.template(text); err != nil {
			return inPlace.With("inputs."+name, err)
		}
	}
	return nil
}

// An InputError says that a flow lacks a given input, or that a needed input was not given.
type InputError struct {
	Name string // of the input
	said *message.Text
}

func (e *InputError) Error() string { return e.said.Text }

// Tell returns the error's sentence.
func (e *InputError) Tell() *message.Text { return e.said }

// checkGiven checks that each input without a default was given, and that the flow has each given input. The error is
// an *InputError.
func (f *Flow) checkGiven(given map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if _, ok := f.Inputs[name]; !ok {
			return &InputError{name, errOtherInput.With(f.Name, name)}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.Inputs)) {
		if _, ok := given[name]; !ok && f.Inputs[name].Default == nil {
			return &InputError{name, errInputNeeded.With(f.Name, name)}
		}
	}
	return nil
}

// maxInputs is the total length of the inputs, in bytes.
const maxInputs = 16 << 20

// Fill returns the given inputs together with the defaults. The error of a wrong input wraps an *InputError.
func (f *Flow) Fill(given map[string]string) (map[string]string, error) {
	if err := f.checkGiven(given); err != nil {
		return nil, &fileError{"", err}
	}
	all, size := map[string]string{}, 0
	for name, in := range f.Inputs {
		v, ok := given[name]
		if !ok {
			v = *in.Default // checkGiven has made sure that there is a default
		}
		all[name] = v
		size += len(v)
	}
	if size > maxInputs {
		return nil, &fileError{"", errLargeInputs.With(size, maxInputs)}
	}
	return all, nil
}
