package log

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/mod/sumdb/note"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/cmd/perlica/screen"
	"github.com/perlica/perlica/eventlog/anchor"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/event"
	"github.com/perlica/perlica/eventlog/evidence"
	"github.com/perlica/perlica/eventlog/intents"
	"github.com/perlica/perlica/eventlog/message"
	"github.com/perlica/perlica/eventlog/verify"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/kernel/report"
)

type verifyFlags struct {
	json  bool
	since string
	proof string
	keys  []string

	requireSignature bool
	team             bool
}

func (a *app) logVerifyCommand() *cobra.Command {
	var f verifyFlags
	cmd := &cobra.Command{
		Use: "verify [FILE]", Annotations: frame.ReadOnly.Annotation(),
		Short: "Recompute every hash of the log and report the result",
		Long: `Compute all hashes of the log again: the hash of every payload and every event, and the root
of the RFC 6962 Merkle tree over all events. Compare them with the stored hashes, with every
checkpoint and its signature, and with the anchor, a small file next to the log.

Then check the events themselves: each input made at most one call, each call has one outcome,
no prompt was sent before its call was recorded, and every answer names its giver.

Without FILE it is the log of this context. FILE is a log or an export of 'perlica log
export'; - is an export on standard input. The command writes nothing.

The command finds edited, deleted, inserted and reordered events. It finds a missing end if a
checkpoint or the anchor covers it. A person with the file and your key can forge both. To
find such a forgery, keep a checkpoint elsewhere and pass it with --since.

Exit codes: 0 the log is undamaged; 1 it is damaged, or cannot be read.`,
		Example: `  perlica log verify
  perlica log verify /backup/eventlog.db --json
  perlica log verify --since kept-elsewhere.txt
  perlica log verify run.jsonl`,
		Args: frame.Between(0, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.team {
				if len(args) > 0 || f.since+f.proof != "" || len(f.keys) > 0 || f.requireSignature {
					return frame.WithHint(frame.UsageErrorf("--team goes with --json alone"),
						"'perlica team fetch WORKER' makes a FILE of one copy")
				}
				return a.verifyTeam(cmd.Context(), f.json)
			}
			if f.proof != "" {
				if len(args) > 0 || f.since != "" {
					return frame.WithHint(frame.UsageErrorf("--proof is checked without any log"),
						"leave out FILE and --since, and verify the log by itself")
				}
				return a.verifyProof(f.proof, f.keys, f.json)
			}
			if f.since == "-" && len(args) > 0 && args[0] == "-" {
				return frame.UsageErrorf("FILE and --since cannot both be standard input")
			}
			return a.logVerify(cmd.Context(), args, f)
		},
	}
	fl := cmd.Flags()
	fl.BoolVar(&f.json, "json", false, "print one JSON object")
	fl.StringVar(&f.since, "since", "",
		"check that the log continues the checkpoint in this `FILE`, or - for standard input")
	fl.StringArrayVar(&f.keys, "key", nil,
		"a verifier `KEY`: it must have signed a valid checkpoint, and the output names the events that no such "+
			"checkpoint covers; may be repeated")
	fl.BoolVar(&f.team, "team", false,
		"verify the copies of all workers' logs on the team's hub with the workers' known keys; see docs/team.md")
	fl.BoolVar(&f.requireSignature, "require-signature", false,
		"report a log as damaged if none of the keys signed any part of it; --key implies this flag")
	fl.StringVar(&f.proof, "proof", "",
		"check this `FILE` of 'perlica log prove' without a log; - is standard input")
	return cmd
}

// verified is the result of log verify, as the command prints it.
type verified struct {
	File     string        `json:"file"`
	OK       bool          `json:"ok"`
	Events   int64         `json:"events"`
	Root     string        `json:"root,omitempty"` // base64; empty if unknown
	FirstBad event.Seq     `json:"first_bad_seq,omitempty"`
	Kind     verify.Damage `json:"kind,omitempty"`   // kind of the first finding
	Damage   string        `json:"damage,omitempty"` // text of the first finding

	// events covered by a signature of a known or requested key
	Signed   int64                `json:"signed_events"`
	Cosigned []verify.Cosignature `json:"cosigned,omitempty"` // cosignatures of known witnesses
	// number of events after the signed ones, if the user requires a signature
	Uncovered   int64 `json:"uncovered_events,omitempty"`
	Checkpoints int   `json:"checkpoints"`
	Anchors     int   `json:"anchors"`
	Pruned      int64 `json:"pruned_payloads,omitempty"`
	Withheld    int64 `json:"withheld_payloads,omitempty"`
	Absent      int64 `json:"absent_events,omitempty"`

	Findings []verify.Finding `json:"findings,omitempty"`
	More     int              `json:"more_findings,omitempty"`
	Open     []event.RunID    `json:"open_runs,omitempty"` // runs that have an intent and no outcome; this is not damage
	Warnings []string         `json:"warnings,omitempty"`

	// Checked lists the kinds of damage that verifying an export finds. NotChecked lists the kinds that only a log
	// shows.
	Checked    []verify.Damage `json:"checked,omitempty"`
	NotChecked []verify.Damage `json:"not_checked,omitempty"`

	required bool // true if the user requires a signature
	export   bool
}

func (a *app) logVerify(ctx context.Context, args []string, f verifyFlags) error {
	v, err := a.verifyLog(ctx, args, f)
	if err != nil {
		return err
	}
	if err = a.Show(f.json, v, v.writeText); err == nil && !v.OK {
		err = frame.ExitFailure.With(nil)
	}
	return err
}

// verifyLog opens and verifies the log. If the log is too damaged to open, this counts as damage and not as an
// error.
func (a *app) verifyLog(ctx context.Context, args []string, f verifyFlags) (v verified, err error) {
	opt, err := a.verifyOptions(f)
	if err != nil {
		return v, err
	}
	log, err := a.toVerify(ctx, args)
	v.File, v.export = log.file, log.export
	if errors.Is(err, disk.ErrCorrupt) {
		v.setUnreadable(err)
		return v, nil
	}
	if errors.Is(err, fs.ErrNotExist) && v.leftoversFound() {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	audit := &report.Audit{}
	opt.Audit, opt.NoImport = audit, len(args) == 0
	if p, err := a.Locate(nil); err == nil && opt.NoImport {
		opt.Place = p.KnownLogs().Compare
	}
	own, warning := a.ownKeys(log.origin)
	for _, key := range own {
		if !slices.ContainsFunc(opt.Keys, func(
			k note.Verifier) bool {
			return k.Name() == key.Name() && k.KeyHash() == key.KeyHash()
		}) {
			opt.Keys = append(opt.Keys, key)
		}
	}
	if opt.RequireSignature = len(f.keys) > 0 || f.requireSignature; len(f.keys) == 0 {
		opt.Signers = opt.Keys
	}
	v.required = opt.RequireSignature
	rep, err := a.verifyWithProgress(ctx, log, opt)
	switch {
	case errors.Is(err, disk.ErrCorrupt):
		v.setUnreadable(err)
		return v, nil
	case errors.Is(err, verify.ErrOtherLog):
		return v, frame.WithHint(err, "every log has a name of its own, the first line of its checkpoints")
	case errors.Is(err, evidence.ErrCheckpoint):
		return v, frame.WithHint(fmt.Errorf("--since %s: %w", f.since, err),
			"the copy was changed, or somebody else signed it; the log was not verified")
	case err != nil:
		return v, err
	}
	v.addReport(rep)
	v.Open = audit.Open()
	if warning != "" {
		v.Warnings = append(v.Warnings, warning)
	}
	return v, nil
}

func (a *app) verifyOptions(f verifyFlags) (opt verify.Options, err error) {
	if opt.Keys, err = verifiers(f.keys, "--key"); err != nil {
		return opt, err
	}
	opt.Signers = slices.Clone(opt.Keys)
	if f.since == "" {
		return opt, nil
	}
	text, err := a.readNamed(f.since, maxNote)
	if err != nil {
		return opt, fmt.Errorf("--since: %w", err)
	}
	c, err := parseKept(text)
	if err != nil {
		return opt, frame.WithHint(fmt.Errorf("--since %s: %w", f.since, err),
			"a checkpoint is what 'perlica log checkpoint' prints")
	}
	opt.Since = &c
	return opt, nil
}

// ownKeys returns the user's own keys for a log's origin. If they cannot be used, it returns the reason.
func (a *app) ownKeys(origin string) ([]note.Verifier, string) {
	dirs, err := config.UserDirs(a.Getenv)
	if err != nil {
		return nil, "your keys are not used: " + err.Error()
	}
	keys, err := evidence.ReadKeys(dirs.KeyDir())
	if err != nil {
		return nil, "your keys are not used: " + err.Error()
	}
	if origin == "" {
		return nil, ""
	}
	return keys.Verifiers(origin), ""
}

// setUnreadable reports as damage that the file cannot be read.
func (v *verified) setUnreadable(err error) {
	v.Kind, v.Damage = verify.Unreadable, err.Error()
	v.Findings = []verify.Finding{verify.NewFinding(0, v.Kind, message.Of(err))}
}

// leftoversFound looks for the anchor and the intents file of a log that is missing or empty. If one of them
// remains, it reports the log as truncated and returns true.
func (v *verified) leftoversFound() bool {
	var damage string
	if n := anchor.Size(v.File); n > 0 {
		damage = fmt.Sprintf("there is no log, and its anchor covers %d events", n)
	} else if left, err := intents.Read(v.File); err == nil && left.Called() > 0 {
		damage = fmt.Sprintf("there is no log, and %s names %d calls", filepath.Base(intents.Path(v.File)), left.Called())
	}
	if damage == "" {
		return false
	}
	v.FirstBad, v.Kind, v.Damage = 1, verify.Truncated, damage
	v.Findings = []verify.Finding{{Seq: v.FirstBad, Kind: v.Kind, What: v.Damage}}
	return true
}

func (v *verified) addReport(rep verify.Report) {
	v.OK, v.Events, v.FirstBad = rep.OK(), rep.Events, rep.FirstBad
	if rep.Root != [len(rep.Root)]byte{} {
		v.Root = rep.Root.String()
	}
	v.Signed, v.Cosigned, v.Checkpoints, v.Anchors = rep.Signed, rep.Cosigned, rep.Checkpoints, rep.Anchors
	if v.required {
		v.Uncovered = max(rep.Events+rep.Absent-rep.Signed, 0)
	}
	v.Pruned, v.Withheld, v.Absent = rep.Pruned, rep.Withheld, rep.Absent
	v.Findings, v.More, v.Warnings = rep.Findings, rep.More, rep.WarningTexts()
	if v.export {
		v.Checked, v.NotChecked = rep.Checked, rep.NotChecked
	}
	if len(rep.Findings) > 0 {
		v.Kind, v.Damage = rep.Findings[0].Kind, rep.Findings[0].What
	}
}

// shownFindings is the largest number of findings that are printed. --json contains all of them.
const shownFindings = 20

func (v verified) writeText(w io.Writer, s screen.Styles) error {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	if v.OK {
		line("%s %s%s", s.Green("OK"), screen.Sanitize(v.File), v.sourceText())
	} else {
		line("%s %s%s", s.Red("DAMAGED"), screen.Sanitize(v.File), v.sourceText())
		if v.FirstBad > 0 {
			line("first bad event: seq %d", v.FirstBad)
		}
		for i, f := range v.Findings {
			if i == shownFindings {
				v.More += len(v.Findings) - i
				break
			}
			line("%s: %s", f.Kind, screen.Sanitize(f.What))
		}
		if v.More > 0 {
			line("and %d more", v.More)
		}
	}
	line("events: %d", v.Events)
	if v.Root != "" {
		line("root:   %s", v.Root)
	}
	v.writeSigned(line)
	writeCosigned(v.Cosigned, line)
	if len(v.NotChecked) > 0 {
		var what []string
		for _, kind := range v.NotChecked {
			what = append(what, cmp.Or(uncheckedDamage[kind], string(kind)))
		}
		line("not checked, because an export has none: %s", strings.Join(what, ", "))
	}
	for _, run := range v.Open {
		line("open:   run %s has an intent and no outcome", screen.Sanitize(string(run)))
	}
	for _, text := range v.Warnings {
		line("warning: %s", screen.Sanitize(text))
	}
	switch {
	case v.OK:
		line("%s", v.resultText())
	case !v.export:
		line("to do:  put a copy of the log from before in its place; or move it and its .anchor away, and keep them: " +
			"the next run")
		line("        begins a new log, which does not know the inputs that were called")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// sourceText describes the file if it is an export or an import, or if it lacks events or payloads.
func (v verified) sourceText() string {
	what := ": an import"
	if v.export {
		what = ": an export"
	}
	switch {
	case v.Absent > 0:
		return what + ", of a part of a log"
	case v.Withheld > 0:
		return what + ", without some payloads"
	case v.export:
		return what
	}
	return ""
}

// uncheckedDamage describes the kinds of damage that are visible only in a log's own file and not in an export.
var uncheckedDamage = map[verify.Damage]string{
	verify.Tree: "the stored hashes of the tree and the list of open runs", verify.Anchor: "the anchor",
	verify.Schema: "tables and indexes", verify.Misplaced: "whose log it is",
}

// resultText describes the result for an undamaged log.
func (v verified) resultText() string {
	payloads, numbers := "Every payload", "no number is missing"
	if v.Pruned+v.Withheld > 0 {
		payloads = "Every payload that is there"
	}
	if v.Absent > 0 {
		numbers = "the absent events are hashes only"
	}
	once := "\nNo input was sent twice."
	if v.Absent > 0 {
		once = ""
	}
	return payloads + " has its recorded hash, every event its leaf, " + numbers + ", the root\n" +
		"follows from all of them, and no rule of the contract is broken." + once
}

// writeSigned writes lines about the signatures that were found and the signatures that are missing.
func (v verified) writeSigned(line func(format string, args ...any)) {
	switch {
	case v.Signed == 0 && v.Checkpoints+v.Anchors == 0 && v.Root == "":
		line("signed: nothing")
	case v.Signed == 0 && v.Checkpoints+v.Anchors == 0:
		line("signed: nothing; keep the number and the root elsewhere, to tell later whether the log was rewritten")
	case v.Signed == 0:
		line("signed: nothing by a key that is known here; %s and %s of the anchor hold",
			frame.Count(v.Checkpoints, "checkpoint"), frame.Count(v.Anchors, "line"))
	default:
		line("signed: up to event %d; %s and %s of the anchor hold", v.Signed, frame.Count(v.Checkpoints, "checkpoint"),
			frame.Count(v.Anchors, "line"))
	}
	if v.Uncovered > 0 {
		line("not covered: %s after event %d; no required key has signed them", frame.Count(int(v.Uncovered), "event"),
			v.Signed)
	}
	for _, n := range []struct {
		n    int64
		what string
	}{
		{v.Pruned, "pruned: %s"}, {v.Withheld, "withheld: %s"}, {v.Absent, "absent: %s"},
	} {
		if n.n > 0 {
			thing := "payload"
			if strings.HasPrefix(n.what, "absent") {
				thing = "event"
			}
			line(n.what, frame.Count(int(n.n), thing))
		}
	}
}
