// Command perlica stands between a person and a coding agent. One input makes at most one call, and everything is on
// the record.
//
// This package builds the commands. Package kernel makes the decisions.
package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/coder/acp-go-sdk"
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/frame"
	"github.com/perlica/perlica/eventlog/store"
	"github.com/perlica/perlica/service/team/hub"
)

// version is set by the release build.
var version = "devel"

// softLimit is the memory in bytes from which garbage is collected before the heap doubles. A hundred open questions
// of 1 MB each then stay below 300 MB. GOMEMLIMIT overrides it.
const softLimit = 200 << 20

func main() {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(softLimit)
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

// versionLine returns the line of 'perlica version' and --version.
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
