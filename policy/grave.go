package policy

import (
	"slices"
	"strings"
	"unicode"

	"github.com/perlica/perlica/eventlog/message"
)

// addGrave records a field with the role Grave: its meaning is known, and a person must decide.
func (r *reader) addGrave(name, value string, why *message.Text) {
	r.fields = slices.DeleteFunc(r.fields, func(f Field) bool { return f.Name == name })
	r.fields = append(r.fields, Field{Name: name, Value: value, Role: Grave, Cause: why})
}

// widening are parts of the names of fields that give a tool more rights or remove a protection.
var widening = strings.Fields(`sudo asroot admin superuser privileg capabilit capadd elevat escalat permission
	impersonat runas
	danger bypass approv confirm alwaysallow autoallow allowall yolo fullaccess unrestricted unsafe insecure
	unconfined trust seccomp
	securityopt writableroots allowedtools nosandbox unsandbox disablesandbox skipsandbox outsidesandbox withoutsandbox
	hostnetwork networkaccess allownetwork enablenetwork`)

// widensCommand are the names of fields that widen the rights of a command. Without a command these names mean
// nothing special.
var widensCommand = strings.Fields(`user username uid gid group groups supplementarygroups host hostname machine
	remote network net internet
	root pid ipc userns device devices mount mounts volume volumes caps grant grants become identity account container
	integrity`)

// privilegedValues are values that ask for more rights in a field of any name.
var privilegedValues = strings.Fields(`root administrator superuser system admin sudo runas elevated high ` +
	`unrestricted unconfined`)

// guards are parts of the names of fields that restrict a tool. Switching such a field off widens the tool's rights.
var guards = strings.Fields(`sandbox isolat confine restrict readonly dryrun confirm approv`)

// widens reports whether a field widens the rights of the tool. The result "always" means that the field widens the
// rights in every call. The result "besideCommand" means that it widens them only in a call with a command.
func (r *reader) widens(name, value string, known role) (always, besideCommand bool) {
	plain := plainName(name)
	value = plainName(value)
	has := func(parts []string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(plain, part) })
	}
	ends := func(end string) bool { return strings.HasSuffix(plain, end) }
	off := isOff(plain, value)
	usual := off || slices.Contains([]string{"default", "usedefault"}, value)
	mayWiden := known == unknown || known == mode
	requiresApproval := has([]string{"approv", "confirm"}) && !has([]string{"auto", "skip", "bypass", "no"})
	switch {
	case slices.Contains([]role{inert, text, body}, known):
	case mayWiden && has(widening) && !has([]string{"disallow", "noapprov"}):
		// A field that requires an approval, or that a table knows as a mode, grants nothing while it is on. Switching
		// off the requirement widens the rights.
		if requiresApproval || known == mode {
			return off && known == unknown && value != "", false
		}
		return !usual, false
	case mayWiden && has(guards):
		given := value != "" && value != "null"
		return given && (off || strings.HasPrefix(value, "{")), false
	case slices.Contains(widensCommand, plain), known == unknown &&
		(ends("user") || strings.Contains(plain, "network")):
		return false, !usual
	case known == unknown && slices.Contains(privilegedValues, value):
		return slices.Contains([]string{"edit", "move", "delete"}, r.call.Kind), true
	}
	return false, false
}

// isOff reports whether the value switches off a field. The parameter "plain" is the field's name, as plainName
// returns it. In a field with a user or a group, 0 means root.
func isOff(plain, value string) bool {
	if value == "0" {
		id := func(end string) bool { return strings.HasSuffix(plain, end) }
		return !slices.ContainsFunc([]string{"uid", "gid", "user", "group"}, id)
	}
	return slices.Contains([]string{"", "false", "no", "off", "none", "disabled", "disable", "null", "[]", "{}"}, value)
}

// naming are endings of field names. The value of such a field is the name of a tool or of an action.
var naming = strings.Fields(`tool toolname function functionname method action operation op verb`)

// These lists have words from the names of tools and from titles. A word of gravest always means a grave action. A
// word of graver means a grave action unless the same name has a word of reading: merge_branch is grave, and
// get_release is harmless. A word of changing means a grave action only together with a word of guarded:
// create_token is grave, and create_page is harmless.
var (
	gravest = strings.Fields(`delete del remove drop destroy erase purge wipe truncate nuke unlink rm rmdir trash
		uninstall revoke
		terminate kill shutdown reboot poweroff overwrite sudo rollback`)
	graver = strings.Fields(`reset stop restart disable deploy undeploy publish release merge push send post put patch
		transfer pay charge refund
		buy purchase withdraw submit approve grant rotate revert restore clear flush prune evict drain detach cancel
		ban kick invite sign
		migrate apply provision format email tweet upload execute exec eval run shell bash terminal`)
	changing = strings.Fields(`add create new set update change assign make enable import`)
	guarded  = strings.Fields(`user token secret key role permission member collaborator password credential webhook
		policy admin access account`)
	reading = strings.Fields(`get list read search find fetch view show query describe count check inspect lookup ` +
		`browse status explain diff log`)
)

// action returns the word in a name or title that describes a grave action such as removing, sending or running. It
// returns "" if no word does.
func action(text string) string {
	var all []string
	for _, word := range strings.FieldsFunc(separated(text), func(c rune) bool { return !unicode.IsLetter(c) }) {
		all = append(all, strings.ToLower(word))
	}
	says := func(list []string) string {
		for _, word := range all {
			if slices.Contains(list, word) || slices.Contains(list, strings.TrimSuffix(word, "s")) {
				return word
			}
			if stem, ok := strings.CutSuffix(word, "ing"); ok && len(stem) > 2 {
				for _, form := range []string{stem, stem + "e", stem[:len(stem)-1]} {
					if slices.Contains(list, form) {
						return word
					}
				}
			}
		}
		return ""
	}
	if word := says(gravest); word != "" {
		return word
	}
	if says(reading) != "" {
		return ""
	}
	if verb, noun := says(changing), says(guarded); verb != "" && noun != "" {
		return verb + " and " + noun
	}
	return says(graver)
}

// separated splits a name in camel case into words.
func separated(text string) string {
	var b strings.Builder
	before := ' '
	for _, c := range text {
		if unicode.IsUpper(c) && unicode.IsLower(before) {
			b.WriteByte(' ')
		}
		b.WriteRune(c)
		before = c
	}
	return b.String()
}

// judgeName judges a field that may contain the name of the tool's action. If isName is true, the field certainly
// contains it. Otherwise the ending of the field's name decides, such as "tool".
func (r *reader) judgeName(name, value string, isName bool) {
	plain := plainName(name[strings.LastIndexByte(name, '.')+1:])
	if value == "true" && slices.Contains(gravest[:9], plain) {
		r.addGrave(name, value, whyFieldAsks.With(plain))
	}
	if r.isExecute() || !isName && !slices.ContainsFunc(naming,
		func(end string) bool { return strings.HasSuffix(plain, end) }) {
		return
	}
	if word := action(value); word != "" {
		r.addGrave(name, value, whyNameSays.With(word))
	}
}

var inQuotes = lazily(`^('[^']*'|"[^"]*")`)

// judgeTitle looks for a grave action in the title of a call. If the call has no kind or the kind "other", the
// title always matters. For other kinds, the title matters only if the call has no other information.
func (r *reader) judgeTitle() {
	if len(r.commands) > 0 || slices.Contains([]string{"execute", "edit", "delete", "move"}, r.call.Kind) {
		return // a call of these kinds without a command or a file is unreadable anyway
	}
	title := strings.TrimSpace(r.call.Title)
	own := r.call.Kind == "" || r.call.Kind == "other"
	silent := len(r.paths) == 0 && !slices.ContainsFunc(r.fields, func(f Field) bool { return f.Role != Inert })
	word := ""
	switch {
	case own && (len(r.patched) == 0 || plainName(title) != "applypatch"):
		word = action(title)
	case !own && silent:
		word = action(inQuotes().ReplaceAllString(title, "")) // quoted words are search terms
	}
	switch {
	case word != "":
		r.addGrave("title", title, whyTitleSays.With(word))
	case own && silent && !r.given:
		r.addGrave("title", title, whyNothingSaid)
	}
}
