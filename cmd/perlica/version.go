package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/coder/acp-go-sdk"
	"github.com/spf13/cobra"

	"github.com/perlica/perlica/cmd/perlica/cli"
)

func versionCommand(a *cli.App) *cobra.Command {
	return &cobra.Command{
		Use: "version", Annotations: cli.Reads.On(),
		Short: "Print the version",
		Args:  cli.Exactly(),
		RunE: func(*cobra.Command, []string) error {
			v := a.Version
			if info, ok := debug.ReadBuildInfo(); ok && v == "devel" && info.Main.Version != "" && info.Main.Version != "(devel)" {
				v = info.Main.Version
			}
			return a.Write(func(w io.Writer) error {
				_, err := fmt.Fprintf(w, "perlica %s (ACP protocol version %d, %s, %s/%s)\n", v, acp.ProtocolVersionNumber, runtime.Version(), runtime.GOOS, runtime.GOARCH)
				return err
			})
		},
	}
}
