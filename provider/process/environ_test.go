package process

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestEnvironPasses(t *testing.T) {
	parent := []string{
		"PATH=/bin", "HOME=/h", "LC_ALL=C", "XDG_DATA_HOME=/x", "http_proxy=p", "HTTPS_PROXY=q",
		"SSH_AUTH_SOCK=/s", "SSL_CERT_FILE=/c", "AWS_SECRET_ACCESS_KEY=s", "GITHUB_TOKEN=g", "TERM=xterm",
		"SystemRoot=C", "PERLICA_HOME=/p", "PERLICA_AGENT_ID=m", "LD_PRELOAD=/evil", "OPENAI_API_KEY=k",
		"OPENAI_BASE_URL=u", "EMPTY=", "=C:=C:\\", "nonsense", "HOME=/last",
	}
	common := []string{"PATH=/bin", "HOME=/last", "LC_ALL=C", "XDG_DATA_HOME=/x", "http_proxy=p", "HTTPS_PROXY=q",
		"SSH_AUTH_SOCK=/s", "SSL_CERT_FILE=/c"}
	for _, tt := range []struct {
		name  string
		extra []string
		more  []string
	}{
		{"nothing more", nil, nil},
		{"a name", []string{"OPENAI_API_KEY"}, []string{"OPENAI_API_KEY=k"}},
		{"a name that is not set", []string{"NO_SUCH"}, nil},
		{"a star", []string{"OPENAI_*", "EMPTY"}, []string{"OPENAI_API_KEY=k", "OPENAI_BASE_URL=u", "EMPTY="}},
		{"case counts", []string{"openai_api_key"}, nil},
		{"Perlica's own by full name", []string{"PERLICA_HOME"}, []string{"PERLICA_HOME=/p"}},
		{"Perlica's own by a star", []string{"PERLICA_*", "PER*"}, nil},
		{"the mark never", []string{"PERLICA_AGENT_ID"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := environ(parent, tt.extra, false)
			if want := append(slices.Clone(common), tt.more...); err != nil || !slices.Equal(got, want) {
				t.Errorf("got %q, %v\nwant %q", got, err, want)
			}
		})
	}
	all, err := environ(parent, []string{"*"}, false)
	if err != nil || !slices.Contains(all, "AWS_SECRET_ACCESS_KEY=s") ||
		strings.Contains(strings.Join(all, " "), "PERLICA") {
		t.Errorf("a bare star: %q, %v", all, err)
	}
}

func TestEnvironOnWindows(t *testing.T) {
	parent := []string{"Path=C:\\bin", "SYSTEMROOT=C", "ProgramFiles(x86)=P", "Secret=s", "=C:=C:\\", "perlica_agent_id=m"}
	got, err := environ(parent, []string{"perlica_agent_id"}, true)
	if want := []string{"Path=C:\\bin", "SYSTEMROOT=C", "ProgramFiles(x86)=P"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestEnvironRefusesWhatIsNoName(t *testing.T) {
	for _, bad := range []string{"TOKEN=hunter2", "=x", "", "A B", "*_KEY", "A**", "A\x00"} {
		got, err := Environ(nil, []string{bad})
		if !errors.Is(err, errEnvName) || got != nil {
			t.Errorf("%q: got %q, %v; want errors.Is(err, ErrEnvName) && got == nil", bad, got, err)
		}
		if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error repeats the value: %v", err)
		}
	}
}
