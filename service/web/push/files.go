package push

import (
	"crypto/ecdh"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	webpush "github.com/SherClockHolmes/webpush-go"

	"github.com/perlica/perlica/eventlog/disk"
	"github.com/perlica/perlica/eventlog/message"
)

// Subscription holds the address of a browser's push service and the encryption keys, in the JSON
// form of a browser's PushSubscription.
type Subscription struct {
	Endpoint string `json:"endpoint"`
	Keys     Keys   `json:"keys"`
}

// Keys holds the browser's public key and its secret in base64url.
type Keys struct {
	P256dh string `json:"p256dh"`
	Auth   string `json:"auth"`
}

// ErrSubscription says that a subscription is invalid.
var ErrSubscription = message.New("push.subscription", "that is not a subscription at a public push service")

// longest limits the length of an endpoint.
const longest = 2000

// check returns the fault of a subscription. The addresses of its host are checked when the sender
// dials.
func (sub Subscription) check() error {
	u, err := url.Parse(sub.Endpoint)
	switch {
	case err != nil || len(sub.Endpoint) > longest:
		return fmt.Errorf("%w: its endpoint is no address", ErrSubscription)
	case u.Scheme != "https" || u.User != nil || u.Fragment != "" || u.Hostname() == "" || u.Port() != "" &&
		u.Port() != "443":
		return fmt.Errorf("%w: its endpoint is not https at the usual port", ErrSubscription)
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && guard().SafeAddr(ip.WithZone("")) != nil {
		return fmt.Errorf("%w: its address is not public", ErrSubscription)
	}
	point, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(sub.Keys.P256dh, "="))
	if err == nil {
		_, err = ecdh.P256().NewPublicKey(point)
	}
	auth, aerr := base64.RawURLEncoding.DecodeString(strings.TrimRight(sub.Keys.Auth, "="))
	if err != nil || aerr != nil || len(auth) != 16 {
		return fmt.Errorf("%w: its keys are malformed", ErrSubscription)
	}
	return nil
}

// suffix ends the name of a device's file.
const suffix = ".json"

func (s *Sender) file(device string) string { return filepath.Join(s.opt.Dir, device+suffix) }

// Subscribe replaces a device's subscription. After a nil error it survives a power failure.
func (s *Sender) Subscribe(device string, sub Subscription) error {
	if err := sub.check(); err != nil {
		return err
	}
	data, err := json.Marshal(sub)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := os.MkdirAll(s.opt.Dir, 0o700); err != nil {
		return err
	}
	return disk.WriteFile(s.file(device), data, 0o600, os.Rename)
}

// Unsubscribe removes a device's subscription, if it exists.
func (s *Sender) Unsubscribe(device string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.removeFile(device)
}

// removeFile removes the file. The caller holds mu.
func (s *Sender) removeFile(device string) error {
	err := os.Remove(s.file(device))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// gone removes a subscription that its push service does not know any longer, unless it was
// replaced.
func (s *Sender) gone(device string, sub Subscription) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := s.readFile(device)
	if err != nil || now != sub {
		return nil
	}
	return s.removeFile(device)
}

// Subscribed returns the devices that have a subscription.
func (s *Sender) Subscribed() (devices []string, err error) {
	entries, err := os.ReadDir(s.opt.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		if device, ok := strings.CutSuffix(e.Name(), suffix); ok && !strings.HasPrefix(device, ".") {
			devices = append(devices, device)
		}
	}
	return devices, err
}

// Since returns the time at which the device was subscribed.
func (s *Sender) Since(device string) (time.Time, error) {
	info, err := os.Stat(s.file(device))
	if err != nil {
		return time.Time{}, err
	}
	return info.ModTime(), nil
}

func (s *Sender) subscription(device string) (Subscription, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readFile(device)
}

// readFile reads a subscription. The caller holds mu.
func (s *Sender) readFile(device string) (sub Subscription, err error) {
	data, err := os.ReadFile(s.file(device))
	if err != nil {
		return sub, err
	}
	if err := json.Unmarshal(data, &sub); err != nil {
		return sub, fmt.Errorf("%s: %w", s.file(device), err)
	}
	return sub, sub.check()
}

// Key returns the public key under which browsers subscribe (VAPID). The first call makes the key.
func (s *Sender) Key() (string, error) {
	_, public, err := s.keys()
	return public, err
}

// keys reads the key or makes it. If two processes make a key, the first one counts.
func (s *Sender) keys() (private, public string, err error) {
	path := filepath.Join(s.opt.Dir, "key")
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(s.opt.Dir, 0o700); err != nil {
			return "", "", err
		}
		made, _, err := webpush.GenerateVAPIDKeys()
		if err != nil {
			return "", "", err
		}
		if err := disk.WriteFile(path, []byte(made+"\n"), 0o600, os.Link); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", "", err
		}
		data, err = os.ReadFile(path)
		if err != nil {
			return "", "", err
		}
	} else if err != nil {
		return "", "", err
	}
	private = strings.TrimSpace(string(data))
	scalar, err := base64.RawURLEncoding.DecodeString(private)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", path, err)
	}
	key, err := ecdh.P256().NewPrivateKey(scalar)
	if err != nil {
		return "", "", fmt.Errorf("%s: %w", path, err)
	}
	return private, base64.RawURLEncoding.EncodeToString(key.PublicKey().Bytes()), nil
}
