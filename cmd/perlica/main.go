// Command perlica stands between a person and a coding agent. One input makes at most one call, and the record has
// every step.
//
// This package builds the commands. Package kernel makes the decisions.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/coder/acp-go-sdk"
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/kernel/config"
	"github.com/perlica/perlica/service/team/hub"
)

// version is the version of this program. The build of a release sets it.
var version = "devel"

// softLimit is a size of the memory in bytes. From this size on, the garbage collector runs before the heap has
// doubled. A hundred open questions of 1 MB each then stay below 300 MB. GOMEMLIMIT overrides it.
const softLimit = 200 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softLimit)
	}
	if tz := os.Getenv("TZ"); tz != "" {
		time.Local = config.LocalTimezone(time.Local, tz)
	}
	os.Exit(newApp(version).main(os.Args[1:]))
}

func versionCommand(a *frame.App) *cobra.Command {
	return &cobra.Command{
		Use: "version", Annotations: frame.ReadOnly.Annotation(),
		Short: "Print the version",
		Args:  frame.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			return a.Write(func(w io.Writer) error {
				_, err := fmt.Fprintln(w, versionLine(a))
				return err
			})
		},
	}
}

// versionLine returns the line that 'perlica version' and --version print.
func versionLine(a *frame.App) string {
	v := a.Version
	if v == "devel" {
		if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
			v = info.Main.Version
		}
	}
	return fmt.Sprintf("perlica %s (log schema %d, hub schema %d, ACP protocol version %d, %s, %s/%s)", v,
		store.SchemaVersion,
		hub.SchemaVersion, acp.ProtocolVersionNumber, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
