package local_test

import (
	"testing"

	"github.com/perlica/perlica/service/channel/channeltest"
	"github.com/perlica/perlica/service/local/localtest"
)

// TestCases runs the table of all channels.
func TestCases(t *testing.T) { channeltest.Run(t, localtest.Subject()) }
