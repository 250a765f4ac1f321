package service_test

import (
	"context"
	"os"
	"path/filepath"

	"github.com/perlica/perlica/service/team"
)

// homeVar names the home of a bridge's machine that belongs to a team, and hubVar names its hub.
const homeVar, hubVar = "PERLICA_SERVICE_HOME", "PERLICA_SERVICE_HUB"

// teamOptions returns the options for opening a team on a machine with this home.
func teamOptions(url, home string) team.Options {
	return team.Options{
		URL: url, Dir: filepath.Join(home, "website"), Version: "test",
		Environ: append(os.Environ(), "PERLICA_HOME="+filepath.Join(home, "perlica"),
			"PERLICA_MODEL_DEFAULT_PROVIDER=predictable"),
	}
}

func linkTo(opt team.Options) *team.Link {
	return team.NewLink(func(ctx context.Context) (*team.Team, error) { return team.Open(ctx, opt) })
}
