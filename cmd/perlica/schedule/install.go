package schedule

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/kernel/project"
)

func (a *app) installCommand() *cobra.Command {
	var yes, timer bool
	cmd := &cobra.Command{
		Use: "install", Annotations: frame.PersonOnly.Annotation(),
		Short: "Show a systemd user unit that keeps the schedules, and write it",
		Long: `Show a systemd user unit that runs 'perlica schedule run' for this project, and write it after
a yes. With --timer, the unit runs 'perlica schedule due' each minute, and no process stays.

The unit has the variables PATH, TZ, LANG and PERLICA_HOME of this terminal, and no secrets. The
command starts nothing: it prints the commands of systemctl that do.`,
		Example: `  perlica schedule install
  perlica schedule install --timer --yes`,
		Args: frame.Exactly(), ValidArgsFunction: frame.NoFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := a.Locate(nil)
			if err != nil {
				return err
			}
			return a.install(cmd.Context(), p, timer, yes)
		},
	}
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "write the unit without a question")
	cmd.Flags().BoolVar(&timer, "timer", false, "a unit and a timer for 'perlica schedule due'")
	return cmd
}

// unit is a file of systemd.
type unit struct{ path, text string }

// install shows the units for the project, and writes them after a yes.
func (a *app) install(ctx context.Context, p *project.Project, timer, yes bool) error {
	if a.System != "linux" {
		return frame.WithHint(frame.UsageErrorf("there is no systemd on this system"),
			"let cron start 'perlica schedule due' each minute; see docs/schedules.md")
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	units, err := a.units(p.Workspace.Root, self, timer)
	if err != nil {
		return err
	}
	for _, u := range units {
		if err := a.Say("# %s\n%s", u.path, u.text); err != nil {
			return err
		}
	}
	if !yes {
		if yes, err = a.Confirm(ctx, "Write this?"); err != nil || !yes {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(units[0].path), 0o755); err != nil {
		return err
	}
	for _, u := range units {
		if err := disk.WriteFile(u.path, []byte(u.text), 0o644, os.Rename); err != nil {
			return err
		}
	}
	return a.Say("written; start it: systemctl --user daemon-reload && systemctl --user enable --now %s\n"+
		"let it run after you log out: loginctl enable-linger", filepath.Base(units[len(units)-1].path))
}

// units returns the units of a project. The last one is the unit to enable.
func (a *app) units(root, self string, timer bool) ([]unit, error) {
	dir := a.Getenv("XDG_CONFIG_HOME")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(a.Getenv("HOME"), ".config")
	}
	sum := sha256.Sum256([]byte(root))
	path := filepath.Join(dir, "systemd", "user", "perlica-schedule-"+hex.EncodeToString(sum[:4]))
	command := []string{self, "--project", root}
	if a.ContextFlag != "" {
		command = append(command, "--context", a.ContextFlag)
	}
	command = append(command, "schedule", map[bool]string{false: "run", true: "due"}[timer])
	for i, word := range command {
		command[i] = strings.ReplaceAll(quote(word), "$", "$$")
	}
	service := "[Unit]\nDescription=Perlica keeps the schedules of " + percent(root) + "\n\n[Service]\n"
	for _, name := range []string{"PATH", "TZ", "LANG", "PERLICA_HOME"} {
		if value := a.Getenv(name); value != "" {
			service += "Environment=" + quote(name+"="+value) + "\n"
		}
	}
	service += "WorkingDirectory=" + percent(root) + "\nExecStart=" + strings.Join(command, " ") + "\n"
	if strings.ContainsFunc(service, func(r rune) bool { return unicode.IsControl(r) && r != '\n' }) ||
		strings.Contains(root+a.Getenv("PATH")+a.Getenv("PERLICA_HOME"), "\n") {
		return nil, errors.New("a path or a variable has a control character, so no unit can have it")
	}
	if !timer {
		service += "Restart=on-failure\nRestartSec=60\nTimeoutStopSec=60\n\n[Install]\nWantedBy=default.target\n"
		return []unit{{path + ".service", service}}, nil
	}
	return []unit{
		{path + ".service", service + "Type=oneshot\nTimeoutStartSec=infinity\n"},
		{path + ".timer", "[Unit]\nDescription=Each minute for the schedules of " + percent(root) +
			"\n\n[Timer]\nOnCalendar=minutely\nAccuracySec=1s\n\n[Install]\nWantedBy=timers.target\n"},
	}, nil
}

// percent escapes the specifiers of systemd.
func percent(text string) string { return strings.ReplaceAll(text, "%", "%%") }

// quote returns a word in quotes for a line of a unit.
func quote(word string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(percent(word)) + `"`
}
