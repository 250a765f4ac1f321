package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/coder/acp-go-sdk"
	"github.com/spf13/cobra"
)

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Annotations: reads.on(),
		Short: "Print the version",
		Args:  exactly(),
		RunE: func(*cobra.Command, []string) error {
			v := a.version
			if info, ok := debug.ReadBuildInfo(); ok && v == "devel" && info.Main.Version != "" && info.Main.Version != "(devel)" {
				v = info.Main.Version
			}
			return a.write(func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "perlica %s (ACP protocol version %d, %s, %s/%s)\n", v, acp.ProtocolVersionNumber, runtime.Version(), runtime.GOOS, runtime.GOARCH)
				return err
			})
		},
	}
}
