package cli

import (
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/perlica/perlica/cmd/perlica/exitcode"
)

// CheckExclusive names the flags that were given although they exclude each other.
func CheckExclusive(cmd *cobra.Command) (err error) {
	cmd.Flags().Visit(func(fl *pflag.Flag) {
		for _, group := range fl.Annotations["cobra_annotation_mutually_exclusive"] {
			var given []string
			for _, name := range strings.Fields(group) {
				if cmd.Flags().Changed(name) {
					given = append(given, "--"+name)
				}
			}
			if len(given) > 1 {
				err = exitcode.Usagef("%s exclude each other", strings.Join(given, " and "))
			}
		}
	})
	return err
}
