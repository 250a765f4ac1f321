//go:build !linux

package eventlog

import "testing"

func TestTorturePowerCuts(t *testing.T) {
	t.Skipf("power cuts need Linux (%d were asked for)", *tortureCuts)
}
